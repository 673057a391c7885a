"""Ranges that are fetched when memory has too few numbers.

One thread reserves a range of a counter while the others wait for it; no lock is held
meanwhile, and errors are shared.
"""

import logging
import threading
from contextlib import suppress
from typing import NamedTuple

from django.db import Error, connections

from django_hilo._allocation.cached_range import CachedRange, Skipped, Slice
from django_hilo._allocation.numbers_in_tests import highest_of_tests
from django_hilo._allocation.pool import Counter, Refill
from django_hilo._allocation.target import Target
from django_hilo._database.dialects import dialect_of
from django_hilo._database.own_connection import POOL_SIZE
from django_hilo.conf import settings
from django_hilo.counters import reservation
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout

logger = logging.getLogger("django_hilo")


class Reserved(NamedTuple):
    """Ranges that were just reserved."""

    reservations: list[Reservation]
    ranges: list[CachedRange]
    skipped: list[Skipped]


def refill(target: Target, counter: Counter, count: int) -> list[Slice] | None:
    """Reserve a range and take from it; None after waiting for another thread."""
    connection = connections[target.using]
    if connection.settings_dict["OPTIONS"].get("pool"):
        # Before others wait for us: a thread that waits inside a transaction may hold
        # the last connection of Django's pool.
        with suppress(Error):  # the reservation raises it, and tries again
            connection.ensure_connection()
    # Another thread that waits for us may have locked the table.
    is_known = counter.source is not None
    rows = 0 if is_known else target.source.minimum_of_rows(target.using)
    mine = Refill()
    try:
        others = counter.begin_refill(mine)
        if others is None:
            return _refill_as(mine, target, counter, count, rows)
    finally:
        # Also if a signal handler raises anywhere, even in the first call.
        counter.end_refill(mine)
    _wait(target, others)
    return None


def _refill_as(
    mine: Refill, target: Target, counter: Counter, count: int, rows: int
) -> list[Slice] | None:
    """Reserve a range and take from it; other threads wait, and take from it too."""
    try:
        capacity = counter.capacity.next(*target.capacities)
        reserved = reserve(target, counter, capacity, count, rows)
        ranges, skipped = reserved.ranges, reserved.skipped
        slices = counter.add(ranges, capacity, count, skipped)
    except BaseException as error:
        counter.end_refill(mine, error)
        raise
    counter.end_refill(mine)
    for each in reserved.reservations:
        reservation.send_reserved(each, target.using)
    return slices


def reserve(
    target: Target, counter: Counter, capacity: int, count: int, rows: int | None = None
) -> Reserved:
    """Reserve ranges of a target's counter, over all numbers that are known.

    ``rows`` is the highest number of rows, if it was looked for; None: the ranges
    belong to the caller's transaction.
    """
    source, bound = target.source, rows is None
    if rows is None:
        rows = source.minimum_of_rows(target.using)
    minimum = max(counter.seen, highest_of_tests(counter.key), rows)
    stored = counter.stored
    size, least = max(capacity, count), max(count, 1)
    wanted = Wanted(size, least, minimum, target.collection)
    reserved = source.reserve(target.using, wanted)
    counter.source = source
    met, fell_from = reserved[0].met, 0
    # Another thread may have raised Max or returned a range meanwhile.
    if met is not None and met < min(stored, counter.stored):
        fell_from = stored
        if not bound:  # a rollback would forget it
            counter.stored = met
        logger.warning(
            "%s on %r fell back to %d from at least %d, because of a restore, a "
            "failover, SQL, or another site with its node tag. This process will not "
            "reissue numbers that it knows of, but other processes may. Run: python "
            "manage.py hilo_raise_max --database=%s",
            *(source.name, target.using, met, stored, target.using),
        )
    ranges, skipped = [], []
    for each in reserved:
        # Read again: a transaction that ended while this one waited for the row may
        # have burnt numbers of the range.
        ranges.append(CachedRange(each, counter.burnt))
        if met is not None:
            # If the counter fell back, others may have the numbers from there.
            skipped.append(Skipped(max(met, fell_from), ranges[-1].next))
    return Reserved(reserved, ranges, skipped)


def _wait(target: Target, refill: Refill) -> None:
    if refill.owner == threading.get_ident():
        work = f"reserving a range of {target.name!r} on {target.using!r}"
        raise NestedReservation.amid(work)
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    if not refill.wait(longest):
        has_server = not dialect_of(connections[target.using]).has_one_writer
        pool = f" {POOL_SIZE}" if has_server else ""
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {target.name!r} on "
            f"{target.using!r} for {longest:g} s. Check what its database waits "
            f"for.{pool}"
        )
    if isinstance(refill.error, HiLoError):
        # Raise it here too, so that waiting threads do not each wait for the same lock.
        raise type(refill.error)(str(refill.error)) from refill.error
