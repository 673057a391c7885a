"""A process that saves rows on one node until it is told to end, whatever happens.

    python -m tests.long.cluster.galera.worker FOLDER SEAT SEED

It ends when the file ``end`` is in the folder, and rests while ``rest`` is. Its journal
(see tests.support.journal) has a line per event, written before the process goes on:

``range COUNTER LOW HIGH`` reserved; ``given COUNTER NUMBER`` an object has it;
``call KIND SECONDS OUTCOME`` a call of django_hilo alone (``ids``) or one that writes
rows too (``rows``), and ``ok`` or the error with its code; ``retry CODE PLACE`` which
django_hilo tried again; ``stood``, ``undone``, ``open COUNTER NUMBER`` what became of a
row; ``emptied`` it gives up its ranges, ``returned COUNTER LAST`` one went back, ``gap
CODE`` one could not; ``resting``; ``repeated TEXT``, ``failed TEXT`` what must not be.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from tests.long.cluster.galera.evidence import SHARED
from tests.support.journal import Journal

STARTER = os.getppid()
# So that a node that is down is not asked all the time.
PAUSE_AFTER_ERRORS = 0.05


class Undo(Exception):
    """Rolls a transaction back."""


class Worker:
    """Handles one request after the other, as a web process does."""

    def __init__(self, folder: Path, seat: int, seed: str) -> None:
        from tests.apps.numbers.models import Item
        from tests.apps.records.models import Order

        self.folder = folder
        self.journal = Journal(folder, seat, "main")
        self.random = random.Random(f"{seed}/{seat}")
        # The shared counter, where nodes collide, is drawn from more often.
        self.models = (Item, Item, Order)
        self.requests = (self.take, self.save, self.save_some, self.save_many)

    def run(self) -> None:
        while os.getppid() == STARTER and not (self.folder / "end").exists():
            if (self.folder / "rest").exists():
                self._rest()
            else:
                seldom = self.random.random() < 0.02
                self._handle(
                    self.give_back if seldom else self.random.choice(self.requests)
                )

    def _rest(self) -> None:
        self.journal.note("resting")
        while (self.folder / "rest").exists() and os.getppid() == STARTER:
            time.sleep(0.02)

    def _handle(self, request: Callable[[], None]) -> None:
        from django.core.signals import request_finished, request_started
        from django.db import Error, IntegrityError

        from django_hilo.exceptions import HiLoError

        request_started.send(type(self))  # django closes what is of no use
        try:
            request()
        except Undo:
            pass
        except IntegrityError as error:
            self.journal.note("repeated", error)
        except (Error, HiLoError):
            time.sleep(PAUSE_AFTER_ERRORS)
        finally:
            request_finished.send(type(self))

    def take(self) -> None:
        """Save an object that got its id before, for no other purpose."""
        thing = self._new()
        with self._called("ids"):
            type(thing).objects.assign_ids([thing])
        self._note_given([thing])
        with self._writing([thing]):
            thing.save()

    def save(self) -> None:
        """Save an object, which gets its id on the way."""
        thing = self._new()
        with self._giving([thing]), self._writing([thing]):
            thing.save()

    def save_some(self) -> None:
        """Save objects in a transaction, which may be rolled back."""
        from django.db import transaction

        things = [self._new() for _ in range(self.random.randint(1, 3))]
        with self._giving(things), self._writing(things), transaction.atomic():
            for thing in things:
                thing.save()
            if self.random.random() < 0.3:
                raise Undo

    def save_many(self) -> None:
        """Save objects with one INSERT."""
        thing = self._new()
        things = [type(thing)() for _ in range(self.random.randint(2, 6))]
        with self._giving(things), self._writing(things):
            type(thing).objects.bulk_create(things)

    def give_back(self) -> None:
        """Return the ranges, as at the end of a process."""
        from django_hilo.generator import return_ranges

        self.journal.note("emptied")
        return_ranges()

    def _new(self) -> Any:
        return self.random.choice(self.models)()

    @contextmanager
    def _giving(self, things: list[Any]) -> Iterator[None]:
        try:
            yield
        finally:
            self._note_given(things)

    @contextmanager
    def _writing(self, things: list[Any]) -> Iterator[None]:
        fate = "open"
        try:
            with self._called("rows"):
                yield
            fate = "stood"
        except Undo:
            fate = "undone"
            raise
        finally:
            self._note_each(fate, things)

    def _note_given(self, things: list[Any]) -> None:
        self._note_each("given", things)

    def _note_each(self, word: str, things: list[Any]) -> None:
        for thing in things:
            if thing.pk is not None:
                self.journal.note(word, *counter_and_number(thing.pk))

    @contextmanager
    def _called(self, kind: str) -> Iterator[None]:
        started, outcome = time.monotonic(), "ok"
        try:
            yield
        except Undo:
            raise
        except BaseException as error:
            outcome = f"{type(error).__name__}:{code_of(error)}"
            raise
        finally:
            took = time.monotonic() - started
            self.journal.note("call", kind, f"{took:.4f}", outcome)

    def listen(self) -> None:
        """Note each range that is reserved, and each try that failed."""
        from django_hilo.signals import range_reserved, range_returned

        range_reserved.connect(self._note_range)
        range_returned.connect(self._note_returned)
        logger = logging.getLogger("django_hilo")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(Retries(self.journal))

    def _note_range(self, reservation: Any, **kwargs: object) -> None:
        from django_hilo.models import HiLoDocument

        key = HiLoDocument.key(reservation.collection, reservation.node_tag)
        span = reservation.range
        self.journal.note("range", key, span.low, span.high)

    def _note_returned(
        self, collection: str, node_tag: str, last: int, **kwargs: object
    ) -> None:
        from django_hilo.models import HiLoDocument

        key = HiLoDocument.key(collection, node_tag)
        self.journal.note("returned", key, last)


class Retries(logging.Handler):
    """Notes what django_hilo tried again, and where it failed."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING and "tried again" not in record.msg:
            return
        assert isinstance(record.args, tuple)
        error = record.args[-1]
        if not isinstance(error, BaseException):
            self.journal.note("failed", record.getMessage())
        elif "tried again" in record.msg:
            self.journal.note("retry", code_of(error), place_of(error))
        else:
            self.journal.note("gap", code_of(error))


def counter_and_number(id: str | int) -> tuple[str, int]:
    """Return the key of the counter that an id came from, and its number."""
    from django_hilo.identifiers import parse

    if isinstance(id, int):
        return SHARED, id
    parsed = parse(id)
    return f"{parsed.collection}/{parsed.node_tag}", parsed.number


def code_of(error: BaseException) -> str:
    """Return the code of the driver's error that led to this one."""
    cause: BaseException | None = error
    while cause is not None:
        if cause.args and isinstance(cause.args[0], int):
            return str(cause.args[0])
        cause = cause.__cause__
    return "none"


def place_of(error: BaseException) -> str:
    """Return whether an error came at connecting, at COMMIT, or in a statement."""
    names = {
        frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)
    }
    if "get_new_connection" in names:
        return "connect"
    return "commit" if "_commit" in names else "statement"


def main() -> None:
    """Set the process up and run it."""
    folder, seat, seed = sys.argv[1:]
    django.setup()
    worker = Worker(Path(folder), int(seat), seed)
    worker.listen()
    try:
        worker.run()
    except BaseException:
        worker.journal.note("failed", traceback.format_exc())
        raise


if __name__ == "__main__":
    main()
