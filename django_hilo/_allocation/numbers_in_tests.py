"""Numbers of a ``TestCase``, which come out of memory.

A TestCase (pytest-django's ``db`` is one) rolls everything back, and no other process
sees it. So its counters are read once a class, ranges of them are reserved in memory,
and their rows are written when somebody looks at them. Each block of a test case, the
class's and the test's, has numbers of its own, which end with it. Gapless numbers and
counters of other systems stay real.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.utils import timezone

from django_hilo._allocation import pool
from django_hilo._allocation.cached_range import CachedRange, Slice, take_from
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._allocation.target import Target
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.identity import DatabaseKey, database_key
from django_hilo._database.own_connection import in_tests
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.uncounted import uncounted
from django_hilo._lock import Lock
from django_hilo.counters.own import ColumnCounter, OwnCounter
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.counters.reservation import new_ticket, send_reserved
from django_hilo.identifiers import MAX_NUMBER, counter_key
from django_hilo.signals import range_reserved

# Those of a counter's row that a reservation changes.
_COLUMNS = ["max", "floor", "low", "size", "reserved_at", "ticket"]
# The attribute of a block.
_NUMBERS = "hilo_numbers"


class Start(NamedTuple):
    """What the tables contain before a test."""

    # The higher of Max and floor, by the key of the row.
    highest: dict[str, int]
    # By node tag.
    prefixes: dict[str, str]
    # The highest integer key, by the key of its counter; read when it is needed.
    keys: dict[CounterKey, int]
    # The first ranges of tests, which share them: each takes numbers by itself.
    firsts: dict[tuple[CounterKey, int], Reservation]

    def highest_of(self, target: Target) -> int:
        """Return the highest number that a counter or its rows have."""
        source: Any = target.source
        highest = self.highest.get(counter_key(*source.key), 0)
        if not isinstance(source, ColumnCounter):
            return highest
        if target.key not in self.keys:
            # Not the last that the database gave: MariaDB's does not roll back.
            with uncounted(connections[source.rows_on]):
                self.keys[target.key] = source.column.of_rows(source.rows_on)
        return max(highest, self.keys[target.key])

    def reserve(self, target: Target, over: int, size: int, count: int) -> Reservation:
        """Return a range, as a real reservation would make it."""
        if not over and (target.key, size) in self.firsts:
            return self.firsts[target.key, size]
        top = max(over, self.highest_of(target))
        if top > MAX_NUMBER - size:
            # A real one takes the numbers that are left, or says that there are none.
            wanted = Wanted(size, max(count, 1), top, target.collection)
            return target.source.reserve(target.using, wanted)[0]
        collection, node_tag = target.source.key
        numbers, prefix = Range(top + 1, top + size), self.prefixes.get(node_tag, "")
        made = Reservation(collection, node_tag, numbers, prefix, new_ticket(), top)
        if not over:
            self.firsts[target.key, size] = made
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

    def reserve(self, start: Start, count: int) -> Reservation:
        """Reserve a range in memory, of the size of a real one."""
        least, most = self.target.capacities
        # Without the clock of `next_capacity`: each run of a test is to be the same.
        self.size = min(max(2 * self.size, least), most)
        # Threads beside the test have reserved up to ``stored``.
        over, size = max(self.highest, self.counter.stored), max(self.size, count)
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

        around, now = self.written_in, connection.savepoint_ids
        if not self.highest or (around is not None and now[: len(around)] == around):
            return
        source, (collection, node_tag) = self.target.source, self.target.source.key
        key = counter_key(collection, node_tag)
        # Not by the manager, which is what calls this.
        rows: Any = QuerySet(HiLoDocument, using=connection.alias).filter(pk=key)
        row = rows.first()
        found = (row.max, row.floor, row.ticket) if row else None
        self.written_in = now.copy()
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


class NumbersInTest:
    """The numbers of a connection in a block of a TestCase."""

    def __init__(
        self, connection: BaseDatabaseWrapper, block: Any, outer: NumbersInTest | None
    ) -> None:
        self._connection, self._block = connection, block
        # Those of the class, which a test goes on from.
        self._outer = outer
        self.counters: dict[CounterKey, CounterInTest] = {}
        self._starts: dict[DatabaseKey, Start] = {}
        # Whether somebody may have changed counters or rows in this block: a test must
        # not leave to the next what it reads then.
        self._is_touched = False
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether the test, or the class, has not ended."""
        return self._block in self._connection.atomic_blocks

    def take(self, target: Target, count: int) -> list[Slice]:
        """Take numbers of a counter."""
        with self._lock:
            mine = self._of(target)
            while not mine.ranges or (slices := take_from(mine.ranges, count)) is None:
                made = mine.reserve(self._start(target.key.database), count)
                if range_reserved.receivers:
                    send_reserved(made, target.using)
        return slices

    def avoid(self, target: Target, explicit: Sequence[int]) -> None:
        """Keep later numbers over explicit ones, of rows that may be inserted now."""
        with self._lock:
            self._of(target).avoid(explicit)
            if isinstance(target.source, ColumnCounter):
                self._touch()

    def write(self, targets: Iterable[Target] = ()) -> None:
        """Write the rows of these counters, or of all, for those who look at them."""
        with self._lock:
            outer = self._outer.counters.values() if self._outer else ()
            known = [each.target for each in (*outer, *self.counters.values())]
            for each in map(self._of, targets or known):
                self._write(each)
            self._touch()

    def _of(self, target: Target) -> CounterInTest:
        """Return a counter; that of the class is copied."""
        mine = self.counters.get(target.key)
        if mine is None and self._outer and target.key in self._outer.counters:
            mine = self._outer.counters[target.key].copy()
        if mine and mine.counter is not pool.current().counter(target.key):
            if mine.written_in is None:
                self._write(mine)
            self._touch()
            mine = None
        self.counters[target.key] = mine = mine or CounterInTest(target)
        return mine

    def _write(self, mine: CounterInTest) -> None:
        # Whoever looks sees one schema. After an error no statement is possible.
        is_here = database_key(self._connection.alias) == mine.target.key.database
        if is_here and not self._connection.needs_rollback:
            with uncounted(self._connection):
                mine.write(self._connection)

    def _touch(self) -> None:
        self._is_touched = True
        self._starts.clear()

    def _start(self, database: DatabaseKey) -> Start:
        if self._is_touched:
            return _read(self._connection)
        kept = (self._outer or self)._starts
        if database not in kept:
            kept[database] = _read(self._connection)
        return kept[database]


# Those of blocks that were open when the newest began.
_open: list[NumbersInTest] = []


def numbers_of(target: Target) -> NumbersInTest | None:
    """Return the numbers of the test that is running, None outside of a TestCase.

    None also for the counters of other systems.
    """
    is_ours = isinstance(target.source, OwnCounter)
    return _numbers_on(connections[target.using]) if is_ours else None


def highest_of_tests(key: CounterKey) -> int:
    """Return the highest number of a counter that open tests have, of any thread.

    A thread beside a test that inserts a row with it would wait for the test's end.
    """
    highest = 0
    for each in _open:
        if key in each.counters and each.is_open:
            highest = max(highest, each.counters[key].highest)
    return highest


def write_counters(**kwargs: object) -> None:
    """Write the counters of the running test to their rows.

    In a `TestCase` numbers come out of memory, and the ORM calls this before it reads
    or writes counters. Call it before raw SQL does.
    """
    for connection in connections.all(initialized_only=True) if in_tests() else ():
        numbers = _numbers_on(connection)
        if numbers is not None:
            numbers.write()


def write_before_default(target: Target) -> None:
    """Raise the default of an integer key, before it gives keys to rows of a test."""
    numbers = numbers_of(target)
    if numbers is not None:
        numbers.write([target])


def _numbers_on(connection: BaseDatabaseWrapper) -> NumbersInTest | None:
    numbers: NumbersInTest | None = None
    for block in connection.atomic_blocks:
        mine: NumbersInTest | None = vars(block).get(_NUMBERS)
        if mine is None:
            if not getattr(block, "_from_testcase", False):
                continue
            if numbers is None:
                # Ranges of tests that committed, and were flushed.
                pool.current().drop_ranges(connection.alias)
            mine = vars(block)[_NUMBERS] = NumbersInTest(connection, block, numbers)
            _open[:] = [*(each for each in _open if each.is_open), mine]
        numbers = mine
    return numbers


def _read(connection: BaseDatabaseWrapper) -> Start:
    """Read the counters and the server prefixes."""
    from django_hilo.models import HiLoDocument, ServerPrefix

    # Not by the ORM, which takes as long as a test, for those that have no class.
    name = connection.ops.quote_name
    counters = f"SELECT id, {name('max')}, floor FROM {HiLoDocument._meta.db_table}"  # noqa: S608 - our own
    prefixes = f"SELECT node_tag, prefix FROM {ServerPrefix._meta.db_table}"  # noqa: S608 - our own

    def read(db: str) -> Start:
        # A savepoint: on PostgreSQL a missing table would end the test's transaction.
        with uncounted(connection), short_transaction(db):
            rows = rows_of(connection, counters)
            highest = {id: max(top, floor) for id, top, floor in rows}
            return Start(highest, dict(rows_of(connection, prefixes)), {}, {})

    return retry(read, connection.alias, "The start of a test", bound=True)
