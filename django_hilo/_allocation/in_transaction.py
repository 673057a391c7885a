"""What the open transaction of a connection does to counters: bound ranges, and floors.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction. Its numbers are taken only there, and those taken are burnt: this process
does not give them again. The range joins the pool when the transaction commits, and is
dropped when the transaction, or a savepoint around the reservation, rolls back: then
Max is lower again, and another process may get the numbers (`burnt_numbers` finds out).
No rollback touches a range that was reserved on the own connection.

In a TestCase our own counters are in memory (`in_tests`), and not bound: they go on
over a rollback inside the test. Those of other systems are bound to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange, Skipped, Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.memory import Key, Memory
from django_hilo._database.transaction import Mark, state_of
from django_hilo.counters.ranges import AS_ASKED
from django_hilo.counters.reservation import send_reserved


@dataclass
class Floor:
    """The highest explicit number that a transaction has inserted."""

    number: int
    # How far above it the next floor is raised.
    step: AdaptiveCapacity = field(default_factory=AdaptiveCapacity)


@dataclass
class Bound:
    """What the work before a mark has done to a counter.

    The mark has it among its ``values``: a commit calls `commit`, and a rollback drops
    the value (`_database.transaction.Mark.settle`).
    """

    key: Key
    ranges: list[CachedRange] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    # That of the newest range.
    capacity: AdaptiveCapacity | None = None
    floor: Floor | None = None
    # The counter's row is at least at this, in the transaction.
    stored: int = 0

    def commit(self) -> None:
        """Let the process take of the ranges, which are in its pool from now on."""
        for cached in self.ranges:
            cached.mark = None
        mine = memory.current().memory(self.key)
        mine.add(self.ranges, skipped=self.skipped)
        mine.capacity = self.capacity or mine.capacity
        mine.note_stored(self.stored)


def bound_to(mark: Mark, held: Memory) -> Bound:
    """Return what the work before a mark has done to a counter, to be changed."""
    bound: Bound = mark.values.setdefault(held.key, Bound(held.key))
    return bound


def all_bound(held: Memory) -> list[tuple[Mark, Bound]]:
    """Return what lasts of what a transaction has done to a counter, oldest first."""
    marks, key = state_of(connections[held.database.alias]).open_marks(), held.key
    return [(each, each.values[key]) for each in marks if key in each.values]


def newest(held: Memory, connection: BaseDatabaseWrapper, name: str) -> Any:
    """Return the newest ``capacity`` or ``floor`` of a transaction, or None."""
    for mark in reversed(state_of(connection).open_marks()):
        found = getattr(mark.values.get(held.key), name, None)
        if found is not None:
            return found
    return None


def take_bound(held: Memory, count: int) -> list[Slice] | None:
    """Take numbers of the ranges that the transaction has reserved."""
    with held.locked():
        ranges: deque[CachedRange] = deque()
        for _, bound in all_bound(held):
            ranges += [each for each in bound.ranges if each.left]
        slices = take_from(ranges, count) if ranges else None
    mark = slices[-1].mark if slices else None
    # A TestCase starts each test from its row.
    if slices and mark is not None and mark.test_block is None:
        held.burn(slices[-1].high)
    return slices


def take_anew(counter: Counter, count: int) -> list[Slice]:
    """Take numbers of bound ranges, and reserve one first if they have fewer."""
    slices = take_bound(counter.memory, count)
    while slices is None:
        mark = state_of(connections[counter.using]).mark()
        if mark is None:
            return _take_unmarked(counter, count)
        bind(counter, mark, count)
        slices = take_bound(counter.memory, count)
    return slices


def bind(counter: Counter, mark: Mark, count: int) -> None:
    """Reserve a range that belongs to the caller's transaction."""
    held = counter.memory
    adaptive = newest(held, connections[counter.using], "capacity")
    capacity = (adaptive or held.capacity).of_range(*counter.capacities)
    reserved = counter.fetch(capacity, count)
    bound = bound_to(mark, held)
    bound.capacity = AdaptiveCapacity()
    bound.capacity.note(reserved.capacity)
    bound.skipped += reserved.skipped
    bound.ranges = [each for each in bound.ranges if each.left] + reserved.ranges
    if counter.source.rolls_back:
        for cached in reserved.ranges:
            cached.mark = mark
    for each in reserved.reservations:
        send_reserved(each, counter.using)


def _take_unmarked(counter: Counter, count: int) -> list[Slice]:
    """Take numbers in a transaction whose end nothing will tell, and keep none."""
    slices = None
    while slices is None:
        reserved = counter.fetch(AS_ASKED, count)
        slices = take_from(deque(reserved.ranges), count)
        for each in reserved.reservations:
            send_reserved(each, counter.using)
    counter.memory.burn(slices[-1].high)
    return slices


def drop_bound(held: Memory, numbers: Iterable[int] | None = None) -> None:
    """Drop the ranges that contain one of these numbers, or all ranges."""
    with held.locked():
        for _, bound in all_bound(held):
            left = bound.ranges
            bound.ranges = []
            if numbers is not None:
                bound.ranges = [each for each in left if not each.has_any(numbers)]
            if len(bound.ranges) < len(left) and bound.capacity:
                bound.capacity.keep()
