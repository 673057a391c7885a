"""Numbers of a ``TestCase``, which come out of memory.

A TestCase (pytest-django's ``db`` is one) rolls everything back, and no other process
sees it. So its counters are read once a class, ranges of them are reserved in memory,
and their rows are written when somebody looks at them. Each block of a test case, the
class's and the test's, has numbers of its own, which end with it. Gapless numbers and
counters of other systems stay real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.cached_range import Slice, take_from
from django_hilo._allocation.counter_in_test import CounterInTest, Start
from django_hilo._allocation.pool import CounterKey
from django_hilo._allocation.target import Target
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.identity import DatabaseKey, database_key
from django_hilo._database.own_connection import in_tests
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.uncounted import uncounted
from django_hilo._lock import Lock
from django_hilo.counters.key_column import highest_keys
from django_hilo.counters.own import ColumnCounter, OwnCounter
from django_hilo.counters.reservation import send_reserved
from django_hilo.signals import range_reserved

# The attribute of a block.
_NUMBERS = "hilo_numbers"


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
        # Read in each test, which may have deleted rows. Not the last that the database
        # gave: MariaDB's does not roll back.
        self._keys: dict[CounterKey, int] = {}
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
                start, key = self._start(target.key.database), self._highest_key(target)
                made = mine.reserve(start, count, key)
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
        self._keys.clear()

    def _highest_key(self, target: Target) -> int:
        """Return the highest key of the rows of an integer key, else 0."""
        source: Any = target.source
        if not isinstance(source, ColumnCounter):
            return 0
        if target.key not in self._keys:
            known = self._start(target.key.database).columns
            known[target.key] = source
            # With those that tests of the class needed before.
            here = {
                key: of for key, of in known.items() if of.rows_on == source.rows_on
            }
            with uncounted(connections[source.rows_on]):
                keys = highest_keys([of.column for of in here.values()], source.rows_on)
            self._keys.update(zip(here, keys, strict=True))
        return self._keys[target.key]

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
