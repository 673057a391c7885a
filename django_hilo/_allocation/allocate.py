"""Numbers and ids, taken from memory or from a new range.

One thread reserves a range of a counter while the others wait for it; no lock is held
meanwhile, and errors are shared. With ``HILO["PREFETCH_AT"]`` a thread in the
background reserves the next range before the numbers are used up.
"""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import suppress
from typing import Any

from django.db import Error, connections

from django_hilo._allocation import pool
from django_hilo._allocation.cache import CachedRange, Slice
from django_hilo._allocation.pool import Counter, Refill
from django_hilo._allocation.target import Target
from django_hilo._allocation.transaction import TransactionState
from django_hilo._database.connection import database_key, has_schemas, use_own
from django_hilo._database.dialects import dialect_of
from django_hilo._database.own_connection import POOL_SIZE, in_tests
from django_hilo.conf import settings
from django_hilo.counters import reservation
from django_hilo.counters.ranges import Reservation
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout

logger = logging.getLogger("django_hilo")


def allocate(target: Target, count: int) -> list[Slice]:
    """Take ``count`` numbers, and reserve a range first if memory has fewer."""
    counter = pool.current().counter(target.key)
    slices = counter.take(count) or _allocate_anew(target, counter, count)
    _prefetch(target, counter)
    return slices


def allocate_in_memory(target: Target, count: int) -> list[Slice] | None:
    """Take ``count`` numbers without I/O; None if that is impossible."""
    # Only the connection of the thread that runs sync code knows the tenant's schema.
    if target.key.database.schema is not None:
        return None
    counter = pool.current().counter(target.key)
    slices = counter.take(count)
    _prefetch(target, counter)
    return slices


def allocate_id(
    target: Target, spent: Iterator[Any] | None
) -> tuple[Any, Iterator[Any] | None]:
    """Return the next id, and the iterator over later ones, if any, after ``spent``."""
    counter, style, ids = pool.current().counter(target.key), target.style, spent
    while (ids := counter.cut(style, ids)) is not None:
        _prefetch(target, counter)
        for id in ids:
            return id, ids
    low, high, reserved = _allocate_anew(target, counter, 1)[0]
    return style.ids(reserved, low, high)[0], None


def cut_in_memory(target: Target, spent: Iterator[Any] | None) -> Iterator[Any] | None:
    """Return an iterator over ids, not the spent one; None if memory has no number."""
    counter = pool.current().counter(target.key)
    ids = counter.cut(target.style, spent)
    _prefetch(target, counter)
    return ids


def _allocate_anew(target: Target, counter: Counter, count: int) -> list[Slice]:
    if target.source.in_callers_transaction(target.using):
        return _allocate_bound(target, counter, count)
    slices = None
    while slices is None:
        # None again after another thread's reservation.
        slices = _refill(target, counter, count) or counter.take(count)
    _prefetch(target, counter)
    return slices


def _allocate_bound(target: Target, counter: Counter, count: int) -> list[Slice]:
    """Take numbers of ranges that belong to the caller's transaction."""
    connection = connections[target.using]
    state = TransactionState.of(connection)
    slices = state.take(counter, count)
    while slices is None:
        capacity = count  # without atomic() nothing could be kept
        if connection.in_atomic_block:
            adaptive = state.capacities.newest(counter.key) or counter.capacity
            capacity = adaptive.next(*target.capacities)
        reserved, fell_from = _reserve(target, counter, capacity, count, bound=True)
        slices = state.add(counter, reserved, capacity, count)
        for each in reserved:
            reservation.announce(each, target.using, fell_from)
    return slices


def _refill(target: Target, counter: Counter, count: int) -> list[Slice] | None:
    """Reserve a range and take from it; None after waiting for another thread."""
    connection = connections[target.using]
    if connection.settings_dict["OPTIONS"].get("pool"):
        # Before others wait for us: a thread that waits inside a transaction may hold
        # the last connection of Django's pool.
        with suppress(Error):  # the reservation raises it, and tries again
            connection.ensure_connection()
    mine = Refill()
    try:
        others = counter.begin_refill(mine)
        if others is None:
            return _refill_as(mine, target, counter, count)
    finally:
        # Also if a signal handler raises anywhere.
        if not mine.done():
            counter.end_refill(mine)
    _wait(target, others)
    return None


def _refill_as(
    mine: Refill, target: Target, counter: Counter, count: int
) -> list[Slice] | None:
    """Reserve a range and take from it; other threads wait, and take from it too."""
    mine.owner = threading.get_ident()
    try:
        capacity = counter.capacity.next(*target.capacities)
        reserved, fell_from = _reserve(target, counter, capacity, count, bound=False)
        ranges = list(map(CachedRange, reserved))
        share, db = settings.PREFETCH_AT, connections[target.using]
        # SQLite has one writer at a time, tests end their transactions and databases,
        # and only the connection of its own thread knows a tenant's schema.
        if share and (dialect_of(db).has_one_writer or in_tests() or has_schemas(db)):
            share = None
        slices = counter.add(ranges, capacity, count, share)
    except BaseException as error:
        counter.end_refill(mine, error)
        raise
    counter.end_refill(mine)
    for each in reserved:
        reservation.announce(each, target.using, fell_from)
    return slices


def _reserve(
    target: Target, counter: Counter, capacity: int, count: int, bound: bool
) -> tuple[list[Reservation], int]:
    """Reserve ranges of a target's counter, over all numbers that are known.

    Return them, and what the counter fell back from if this process sees it now, or 0.
    """
    source, minimum = target.source, counter.seen
    if bound or counter.source is None:
        minimum = max(minimum, source.minimum_of_rows(target.using))
    stored = counter.stored
    reserved = source.reserve(
        target.using,
        max(capacity, count),
        at_least=max(count, 1),
        minimum=minimum,
        collection=target.collection,
        bound=bound,
    )
    counter.source = source
    met = reserved[0].met
    # Another thread may have raised Max or returned a range meanwhile.
    if met is None or met >= min(stored, counter.stored):
        return reserved, 0
    counter.stored = met
    return reserved, stored


def _wait(target: Target, refill: Refill) -> None:
    if refill.owner == threading.get_ident():
        work = f"reserving a range of {target.name!r} on {target.using!r}"
        raise NestedReservation.amid(work)
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    if not wait([refill], longest).done:
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {target.name!r} on "
            f"{target.using!r} for {longest:g} s. Check what its database waits for. "
            f"{POOL_SIZE}"
        )
    error = refill.exception()
    if isinstance(error, HiLoError):
        # Raise it here too, so that waiting threads do not each wait for the same lock.
        raise type(error)(str(error)) from error


def _prefetch(target: Target, counter: Counter) -> None:
    """Let a thread fetch the next range if it is due, once for each range."""
    if not counter.is_due or counter.refill is not None:
        return
    mine = Refill()
    try:
        if counter.begin_ahead(mine):
            # A daemon: if a signal handler interrupts the start, nobody knows of the
            # thread, and it must not keep the process from ending.
            work = (mine, target, counter)
            threading.Thread(target=_fetch, args=work, name="hilo", daemon=True).start()
    except BaseException as error:
        counter.end_refill(mine)
        if not isinstance(error, RuntimeError):  # the interpreter is ending
            raise


def _fetch(mine: Refill, target: Target, counter: Counter) -> None:
    try:
        # Meanwhile the alias may have become that of another database.
        if database_key(target.using) == counter.key.database:
            use_own(target.using)
            _refill_as(mine, target, counter, 0)
    except Exception as error:  # noqa: BLE001 - nobody asked yet
        logger.warning(
            "The next range of %r on %r could not be fetched in advance: %s",
            *(target.name, target.using, error),
        )
    finally:
        counter.end_refill(mine)
        connections.close_all()
