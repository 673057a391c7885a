"""A new range for a counter whose numbers are used up.

One thread reserves, the others wait for it: with all locks released, and with errors
shared.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress

from django.db import Error, connections

from django_hilo._allocation.cache import Share
from django_hilo._allocation.capacity import Ahead
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import Target
from django_hilo._database.connection import has_schemas, in_tests
from django_hilo._database.dialects import dialect_of
from django_hilo.conf import settings
from django_hilo.counters import reservation
from django_hilo.counters.ranges import Reservation
from django_hilo.exceptions import HiLoError, ReservationTimeout

logger = logging.getLogger("django_hilo")


def refill(target: Target, counter: Counter, count: int) -> list[Share] | None:
    """Reserve a range and take from it, or wait for the thread that is doing so."""
    _hold_connection(target.using)
    mine: Future[None] = Future()
    try:
        others = counter.begin_refill(mine)
        if others is None:
            return refill_as(mine, target, counter, count)
    finally:
        counter.end_refill(mine)  # wherever a signal's handler raised
    _wait(target, others)
    return None


def refill_as(
    mine: Future[None], target: Target, counter: Counter, count: int
) -> list[Share] | None:
    """Reserve a range and take from it, while other threads wait for the future.

    A ``count`` of 0 leaves all of it to them.
    """
    began = time.monotonic()
    try:
        capacity = counter.next_capacity(*target.capacities)
        reserved = reserve(target, counter, max(capacity, count), max(count, 1))
        ahead = _fetched_ahead(target, time.monotonic() - began)
        shares = counter.add(reserved, capacity, count, ahead)
    except BaseException as error:
        counter.end_refill(mine, error)
        raise
    counter.end_refill(mine)
    announce(target, reserved)
    return shares


def _fetched_ahead(target: Target, seconds: float) -> Ahead | None:
    """Return when the range after this one is to be fetched, None for when it must be.

    SQLite has one writer at a time, tests end their transactions and databases, and a
    tenant's schema is known to the connection of its own thread.
    """
    share, connection = settings.PREFETCH_AT, connections[target.using]
    if (
        share is None
        or dialect_of(connection).has_one_writer
        or in_tests()
        or has_schemas(connection)
    ):
        return None
    return Ahead(share, seconds)


def _hold_connection(using: str) -> None:
    """Take the thread's connection out of Django's pool before others wait for it.

    A thread that waits in a transaction may hold the pool's last.
    """
    connection = connections[using]
    if connection.settings_dict["OPTIONS"].get("pool"):
        with suppress(Error):  # the reservation tells, and tries again
            connection.ensure_connection()


def _wait(target: Target, refill: Future[None]) -> None:
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    try:
        refill.result(timeout=longest)
    except FutureTimeout:
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {target.name!r} on "
            f"{target.using!r} for {longest:g} s; look at what its database waits for."
        ) from None
    except HiLoError as error:
        # Shared, so that threads in a queue do not wait for the same lock in turn.
        raise type(error)(str(error)) from error
    except BaseException:  # noqa: BLE001, S110 - the other thread's own; try here
        pass


def reserve(
    target: Target, counter: Counter, size: int, needed: int
) -> list[Reservation]:
    """Reserve ranges of a target's counter, over all numbers that are known."""
    source, above = target.source, counter.seen
    is_first = counter.source is None or source.in_callers_transaction(target.using)
    if is_first:
        above = max(above, source.above_rows(target.using))
    stored = counter.stored
    reserved = source.reserve(target.using, size, needed=needed, above=above)
    counter.source = source
    met = reserved[0].met
    if met is not None and counter.is_found_low(met, stored):
        logger.warning(
            "%s on %r fell back to %d, from at least %d: by a restore, a failover, "
            "SQL, or another site with its node tag. This process goes on over the "
            "numbers that it knows, but others may not know them. Run: "
            "python manage.py hilo_raise_max --database=%s",
            *(source.name, target.using, met, stored, target.using),
        )
    return source.named(reserved, target.collection)


def announce(target: Target, reserved: list[Reservation]) -> None:
    """Send `range_reserved` for each range."""
    for each in reserved:
        reservation.announce(each, target.using)
