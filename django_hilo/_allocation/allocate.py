"""Numbers and ids, taken from memory or from a new range.

The range belongs to the caller's transaction where it must.
"""

from collections import deque
from typing import Any

from django.db import connections

from django_hilo._allocation import bound_ranges, pool
from django_hilo._allocation.cached_range import Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.known_targets import KnownTarget
from django_hilo._allocation.numbers_in_tests import numbers_of
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.refill import refill, reserve
from django_hilo._allocation.target import Target
from django_hilo._database.own_connection import in_tests
from django_hilo._database.transaction import STATE, Mark, state_of
from django_hilo.counters import reservation
from django_hilo.counters.ranges import Reservation


def allocate(target: Target, count: int) -> list[Slice]:
    """Take ``count`` numbers, and reserve a range first if memory has fewer."""
    numbers = numbers_of(target) if in_tests() else None
    if numbers is not None:
        return numbers.take(target, count)
    counter = pool.current().counter(target.key)
    return counter.take(count) or _allocate_anew(target, counter, count)


def allocate_in_memory(known: KnownTarget, count: int) -> list[Slice] | None:
    """Take ``count`` numbers without I/O; None if that is impossible."""
    return None if known.is_of_sync_thread else known.counter.take(count)


def one_in_memory(known: KnownTarget) -> tuple[int, Reservation] | None:
    """Take one number without I/O; None if that is impossible."""
    return None if known.is_of_sync_thread else known.counter.take_one()


def allocate_one(known: KnownTarget) -> tuple[Any, list[Slice]]:
    """Take one id; return also its slice, unless a rollback cannot take it back."""
    is_in_test = known.is_tested and known.connection["atomic_blocks"]
    taken = None if is_in_test else known.counter.take_one()
    if taken is not None:
        return known.id_of(*taken), []
    slices = None
    # Its transaction may have reserved ranges.
    if STATE in known.connection and not is_in_test:
        connection = connections[known.target.using]
        slices = bound_ranges.take(connection, known.counter, 1)
    slices = slices or allocate(known.target, 1)
    return known.id_of(slices[0].low, slices[0].reservation), slices


def _allocate_anew(target: Target, counter: Counter, count: int) -> list[Slice]:
    if target.source.in_callers_transaction(target.using):
        return _allocate_bound(target, counter, count)
    slices = None
    while slices is None:
        # None again after another thread's reservation.
        slices = refill(target, counter, count) or counter.take(count)
    return slices


def _allocate_bound(target: Target, counter: Counter, count: int) -> list[Slice]:
    """Take numbers of ranges that belong to the caller's transaction."""
    connection = connections[target.using]
    slices = bound_ranges.take(connection, counter, count)
    while slices is None:
        mark = state_of(connection).mark()
        if mark is None:
            return _allocate_unmarked(target, counter, count)
        bind(target, counter, mark, count)
        slices = bound_ranges.take(connection, counter, count)
    return slices


def bind(target: Target, counter: Counter, mark: Mark, count: int) -> None:
    """Reserve a range that belongs to the caller's transaction."""
    connection = connections[target.using]
    adaptive = bound_ranges.newest(connection, counter, "capacity") or counter.capacity
    capacity = adaptive.next(*target.capacities)
    reserved = reserve(target, counter, capacity, count)
    bound = bound_ranges.bound_to(mark, counter)
    bound.capacity = AdaptiveCapacity()
    bound.capacity.note(capacity)
    bound.skipped += reserved.skipped
    bound.ranges = [each for each in bound.ranges if each.left] + reserved.ranges
    if target.source.rolls_back:
        for cached in reserved.ranges:
            cached.mark = mark
    for each in reserved.reservations:
        reservation.send_reserved(each, target.using)


def _allocate_unmarked(target: Target, counter: Counter, count: int) -> list[Slice]:
    """Take numbers in a transaction whose end nothing will tell, and keep none."""
    slices = None
    while slices is None:
        reserved = reserve(target, counter, count, count)
        slices = take_from(deque(reserved.ranges), count)
        for each in reserved.reservations:
            reservation.send_reserved(each, target.using)
    bound_ranges.burn(connections[target.using], counter, slices[-1].high)
    return slices
