"""Lend ranges to people and to other programs.

A lent range belongs to who asked for it: this process keeps nothing of it.
"""

from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from django_hilo._allocation import memory
from django_hilo._allocation.counter import Counter
from django_hilo.counters import reservation, returning
from django_hilo.counters.own import OwnSource
from django_hilo.counters.ranges import AS_ASKED, Capacity, Reservation, Wanted
from django_hilo.exceptions import RangeNotLent
from django_hilo.models import HiLoDocument
from django_hilo.signals import Change, send_counter_changed

# Errors of a request that may succeed if it is sent again.
BUSY = (OperationalError, InterfaceError)


def lend(
    counter: Counter,
    size: int,
    *,
    user: Any = None,
    at_least: int | None = None,
    minimum: int = 0,
    issuer: str = "",
    capacity: Capacity = AS_ASKED,
) -> Reservation:
    """Reserve ``size`` numbers for ``user``, or for another program.

    There are more if ``capacity`` says so after a wait for the row.
    They start over ``minimum``, the rows, and all that this process has seen. Near
    2^63-1 there may be fewer, but not than ``at_least`` (``None``: all). Raises
    `RangeNotLent` if the counter is not a HiLoDocument.
    """
    source, using = counter.source, counter.using
    if not isinstance(source, OwnSource):
        known = {"collection": counter.collection, "database": using}
        raise RangeNotLent(
            _(
                "The numbers of %(collection)r on %(database)r come from %(source)s, "
                "whose ranges cannot be given to other programs. Request single ids "
                "instead (next-id)."
            )
            % {**known, "source": source.name}
        )
    seen = memory.current().seen(counter.key)
    minimum = max(minimum, seen, source.minimum_of_rows(using))
    least = size if at_least is None else at_least
    wanted = Wanted(size, least, minimum, issuer=issuer, capacity=capacity)
    [lent] = source.reserve(using, wanted)
    reservation.send_reserved(lent, using)
    _send_changed(counter, Change.RESERVED, lent.range.low - 1, lent.range.high, user)
    return lent


def take_back(
    counter: Counter,
    high: int,
    last: int,
    ticket: str = "",
    *,
    user: Any = None,
    issuer: str = "",
) -> int:
    """Take the unused end of a lent range back, and return Max, as `return_range`."""
    source, tag = counter.source, counter.node_tag
    column = source.shared_column if isinstance(source, OwnSource) else None
    range_sent = (counter.collection, high, last, ticket)
    new = returning.return_range(
        *range_sent, issuer=issuer, node_tag=tag, column=column, using=counter.using
    )
    _send_changed(counter, Change.RETURNED, high, new, user)
    return new


def _send_changed(
    counter: Counter, change: Change, old: int, new: int, user: Any
) -> None:
    """Send `counter_changed` if a user asked: of programs only the ranges are sent."""
    if user is not None:
        collection, node_tag = counter.collection.lower(), counter.node_tag
        row = HiLoDocument(collection=collection, node_tag=node_tag)
        send_counter_changed(row, counter.using, change, old, new, user)
