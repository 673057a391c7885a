"""Notes what django_hilo does to counters in this process."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django_hilo._database.which_connection import in_callers_transaction
from django_hilo.conf import settings
from django_hilo.counters import reservation, returning
from django_hilo.exceptions import RangeNotReturned, ReservationTimeout
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from tests.long.torture import sabotage
from tests.long.torture.notes import note


class _Log(logging.Handler):
    """Notes that something is tried again, and that a floor could not be written."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("Retrying"):
            note("retry", record.getMessage())
        elif "could not be raised" in record.msg:
            note("unstored", record.args[2] if record.args else "")  # type: ignore[index]
        elif record.levelno >= logging.WARNING:
            note("warned", record.msg)


def listen() -> None:
    """Note each range that is reserved, or returned, and its attempts."""
    range_reserved.connect(_note_sequence)
    logger = logging.getLogger("django_hilo")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(_Log(logging.DEBUG))
    # Before and after: a process may be killed in between.
    reservation.reserve_range = _announced(reservation.reserve_range)
    returning.return_range = _told(returning.return_range)


def break_if_asked() -> None:
    """Take a protection away, where the run is to prove that it is needed."""
    kind = os.environ.get(sabotage.VARIABLE)
    if kind:
        sabotage.break_product(kind)


def key(collection: str, node_tag: str | None, using: str) -> str:
    """Return the key of a counter's row."""
    tag = settings.node_tag(using) if node_tag is None else node_tag
    return HiLoDocument.key(collection, tag)


@contextmanager
def _noting_locks(*what: object) -> Iterator[None]:
    try:
        yield
    except ReservationTimeout:
        # Nothing was committed.
        note("locked", *what)
        raise


def _announced(reserve: Any) -> Any:
    @wraps(reserve)
    def reserve_range(
        collection: str, node_tag: str, wanted: Any, using: str, *column: Any
    ) -> Any:
        note("reserving")
        with _noting_locks():
            reserved = reserve(collection, node_tag, wanted, using, *column)
        # Before other threads take of it, and the process is killed meanwhile.
        _note_reserved(reserved, using)
        return reserved

    return reserve_range


def _told(give_back: Any) -> Any:
    @wraps(give_back)
    def returning(
        collection: str, high: int, last: int, *marks: str, **options: Any
    ) -> Any:
        using = options.get("using", "default")
        what = key(collection, options.get("node_tag"), using), high, last
        note("returning", *what)
        try:
            with _noting_locks(*what):
                result = give_back(collection, high, last, *marks, **options)
        except RangeNotReturned:
            note("refused", *what)
            raise
        note("returned", *what)
        return result

    return returning


def _note_sequence(reservation: Any, using: str, **kwargs: object) -> None:
    if reservation.met is None:  # it is no row of ours
        _note_reserved(reservation, using)


def _note_reserved(reservation: Any, using: str) -> None:
    bound = "bound" if in_callers_transaction(using) else "free"
    numbers = reservation.range
    counter = key(reservation.collection, reservation.node_tag, using)
    note("range", counter, numbers.low, numbers.high, bound)
