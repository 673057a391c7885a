"""A counter as one test knows it: its ranges, and its row once somebody looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.utils import timezone

from django_hilo._allocation import pool
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._allocation.target import Target
from django_hilo.counters.own import ColumnCounter
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.counters.reservation import new_ticket
from django_hilo.identifiers import MAX_NUMBER, counter_key

# Those of a counter's row that a reservation changes.
_COLUMNS = ["max", "floor", "low", "size", "reserved_at", "ticket"]


class Start(NamedTuple):
    """What the tables contain before a test."""

    # The higher of Max and floor, by the key of the row.
    highest: dict[str, int]
    # By node tag.
    prefixes: dict[str, str]
    # The ranges of tests, which share them: each takes numbers by itself.
    ranges: dict[tuple[CounterKey, int, int], Reservation]
    # The integer keys that tests needed so far.
    columns: dict[CounterKey, ColumnCounter]

    def reserve(self, target: Target, over: int, size: int, count: int) -> Reservation:
        """Return a range, as a real reservation would make it."""
        source: Any = target.source
        top = max(over, self.highest.get(counter_key(*source.key), 0))
        known = target.key, size, top
        if known in self.ranges:
            return self.ranges[known]
        if top > MAX_NUMBER - size:
            # A real one takes the numbers that are left, or says that there are none.
            wanted = Wanted(size, max(count, 1), top, target.collection)
            return target.source.reserve(target.using, wanted)[0]
        collection, node_tag = target.source.key
        numbers, prefix = Range(top + 1, top + size), self.prefixes.get(node_tag, "")
        made = Reservation(collection, node_tag, numbers, prefix, new_ticket(), top)
        self.ranges[known] = made
        return made


class CounterInTest:
    """A counter in a block of a TestCase."""

    def __init__(self, target: Target) -> None:
        self.target = target
        # Another one after the process forgot it: then start over its row.
        self.counter: Counter = pool.current().counter(target.key)
        self.ranges: deque[CachedRange] = deque()
        self.newest: Reservation | None = None
        # The capacity of the newest range.
        self.size = 0
        # The highest number that was reserved, or that an explicit id has.
        self.highest = 0
        # The highest explicit number that was above the others.
        self.floor = 0
        # The savepoints around the write of the row, which is undone if one of them is
        # rolled back; None: it is yet to be written.
        self.written_in: list[str] | None = None
        # Max, floor and ticket before it was written; None: there was no row.
        self.before: tuple[int, int, str] | None = None

    def copy(self) -> CounterInTest:
        """Return a counter that goes on from here by itself."""
        mine = copy(self)
        # Whatever became of it in another test.
        mine.counter = pool.current().counter(self.target.key)
        mine.ranges = deque(map(copy, self.ranges))
        return mine

    def reserve(self, start: Start, count: int, key: int) -> Reservation:
        """Reserve a range in memory over a key, of the size of a real one."""
        least, most = self.target.capacities
        # Without the clock of `next_capacity`: each run of a test is to be the same.
        self.size = min(max(2 * self.size, least), most)
        # Threads beside the test have reserved up to ``stored``.
        over, size = max(self.highest, self.counter.stored, key), max(self.size, count)
        self.newest = start.reserve(self.target, over, size, count)
        self.ranges.append(CachedRange(self.newest))
        self.highest, self.written_in = self.newest.range.high, None
        return self.newest

    def avoid(self, explicit: Sequence[int]) -> None:
        """Keep later numbers over explicit ones."""
        if max(explicit) > self.highest:
            self.highest = self.floor = max(explicit)
            self.ranges, self.written_in = deque(), None
        left = [each for each in self.ranges if not each.has_any(explicit)]
        self.ranges = deque(left)

    def write(self, connection: BaseDatabaseWrapper) -> None:
        """Write the row as a reservation leaves it, unless it has been written."""
        from django_hilo.models import HiLoDocument

        around = self.written_in
        # None: a block without a savepoint, whose rollback is that of the block around.
        now = [each for each in connection.savepoint_ids if each]
        if not self.highest or (around is not None and now[: len(around)] == around):
            return
        source, (collection, node_tag) = self.target.source, self.target.source.key
        key = counter_key(collection, node_tag)
        # Not by the manager, which is what calls this.
        rows: Any = QuerySet(HiLoDocument, using=connection.alias).filter(pk=key)
        row = rows.first()
        found = (row.max, row.floor, row.ticket) if row else None
        self.written_in = now
        if around is None:
            self.before = found
        elif found != self.before:
            return  # it was not undone
        row = row or HiLoDocument(id=key, collection=collection, node_tag=node_tag)
        row.ticket = new_ticket()
        if self.newest is not None:
            row.low, row.size = self.newest.range.low, self.newest.range.size
            row.reserved_at = timezone.now()
            if self.newest.range.high == self.highest:
                row.ticket = self.newest.ticket
        row.floor = max(row.floor, self.floor)
        row.max = max(row.max, row.floor, self.highest)
        rows.bulk_create([row], ignore_conflicts=True)
        rows.bulk_update([row], _COLUMNS)
        if isinstance(source, ColumnCounter) and source.shared_column is not None:
            source.shared_column.raise_default(connection.alias, self.highest)
