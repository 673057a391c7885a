"""What the open transaction of a connection has done to counters.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction. Its numbers are taken only there, and are burnt: this process does not give
them again. The range joins the pool when the transaction commits, and is dropped when
the transaction, or a savepoint around the reservation, rolls back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.cached_range import CachedRange, Skipped, Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._database.transaction import Mark, state_of, test_blocks


@dataclass
class Floor:
    """The highest explicit number that a transaction has inserted."""

    number: int
    # How far above it the next floor is raised.
    step: AdaptiveCapacity = field(default_factory=AdaptiveCapacity)


@dataclass
class Bound:
    """What the work before a mark has done to a counter."""

    key: CounterKey
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
        counter = pool.current().counter(self.key)
        counter.add(self.ranges, skipped=self.skipped)
        counter.capacity = self.capacity or counter.capacity
        counter.note_stored(self.stored)


def bound_to(mark: Mark, counter: Counter) -> Bound:
    """Return what the work before a mark has done to a counter, to be changed."""
    bound: Bound = mark.values.setdefault(counter.key, Bound(counter.key))
    return bound


def held(connection: BaseDatabaseWrapper, counter: Counter) -> list[tuple[Mark, Bound]]:
    """Return what lasts of what a transaction has done to a counter, oldest first."""
    marks = state_of(connection).open_marks()
    return [
        (each, each.values[counter.key]) for each in marks if counter.key in each.values
    ]


def newest(connection: BaseDatabaseWrapper, counter: Counter, name: str) -> Any:
    """Return the newest ``capacity`` or ``floor`` of a transaction, or None."""
    for mark in reversed(state_of(connection).open_marks()):
        found = getattr(mark.values.get(counter.key), name, None)
        if found is not None:
            return found
    return None


def take(
    connection: BaseDatabaseWrapper, counter: Counter, count: int
) -> list[Slice] | None:
    """Take numbers of the ranges that the transaction has reserved."""
    with counter.locked():
        ranges: deque[CachedRange] = deque()
        for mark in state_of(connection).open_marks():
            bound = mark.values.get(counter.key)
            ranges += [each for each in bound.ranges if each.left] if bound else ()
        slices = take_from(ranges, count)
    if slices and slices[-1].mark is not None:
        burn(connection, counter, slices[-1].high)
    return slices


def burn(connection: BaseDatabaseWrapper, counter: Counter, number: int) -> None:
    """Give no number up to this one again; a TestCase starts each test from its row."""
    if not test_blocks(connection):
        counter.burn(number)


def drop(
    connection: BaseDatabaseWrapper,
    counter: Counter,
    numbers: Iterable[int] | None = None,
) -> None:
    """Drop the ranges that contain one of these numbers, or all ranges."""
    with counter.locked():
        for _, bound in held(connection, counter):
            left = bound.ranges
            bound.ranges = []
            if numbers is not None:
                bound.ranges = [each for each in left if not each.has_any(numbers)]
            if len(bound.ranges) < len(left) and bound.capacity:
                bound.capacity.keep()
