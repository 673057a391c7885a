"""The counters of a ``TestCase``: in memory, until somebody looks at their rows.

A TestCase (pytest-django's ``db`` is one) rolls everything back, and no other process
sees it. So its counters are read once a class, ranges of them are reserved in memory,
and their rows are written when somebody looks at them. Each block of a test case, the
class's and the test's, has counters of its own, which end with it. Gapless numbers,
PostgreSQL's sequences and counters of other systems stay real.
"""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.utils import timezone

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.memory import Key, Memory
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.identity import DatabaseKey, database_key
from django_hilo._database.own_connection import is_test_process
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.transaction import test_blocks
from django_hilo._database.uncounted import uncounted
from django_hilo._lock import Lock
from django_hilo.counters.key_column import highest_keys
from django_hilo.counters.own import ColumnSource, OwnSource
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.counters.reservation import new_ticket, send_reserved
from django_hilo.identifiers import MAX_NUMBER, counter_key
from django_hilo.signals import range_reserved

# The attribute of a block of Django's.
_BLOCK = "hilo_block"
# Those of a counter's row that a reservation changes.
_COLUMNS = ["max", "floor", "low", "size", "reserved_at", "ticket"]


class Start(NamedTuple):
    """What the tables contain before a test."""

    # The higher of Max and floor, by the key of the row.
    highest: dict[str, int]
    # By node tag.
    prefixes: dict[str, str]
    # The ranges of tests, which share them: each takes numbers by itself.
    ranges: dict[tuple[Key, int, int, int], Reservation]
    # The integer keys that tests needed so far.
    columns: dict[Key, ColumnSource]


class _SteadyMemory(Memory):
    """What a test holds of a counter: the same in each run."""

    def __init__(self, source: InMemorySource) -> None:
        super().__init__(source.real.key, clock=float)  # which is always 0
        self._source = source

    def go_on_from(self, other: Memory) -> None:
        self._ranges = deque(map(copy, other._ranges))
        self.capacity = copy(other.capacity)
        for name in "seen", "stored", "explicit", "burnt", "source":
            setattr(self, name, getattr(other, name))

    # A reservation takes no time, so no thread waits for that of another.

    def take_one(self) -> tuple[int, Reservation] | None:
        while (taken := super().take_one() if self._ranges else None) is None:
            self._source.fill(1)
        return taken

    def take(self, count: int) -> list[Slice] | None:
        while (slices := super().take(count)) is None:
            self._source.fill(count)
        return slices

    def see(self, number: int) -> None:
        if number > self.seen:
            with self.locked():
                self._ranges.clear()
            self._source.floor, self._source.written_in = number, None
        super().see(number)
        # Its row is written with it, when somebody looks.
        self.note_stored(number)
        if isinstance(self._source.real.source, ColumnSource):
            self._source.block.touch()  # a row with the key may be inserted now

    def drop_all(self) -> None:
        super().drop_all()
        self._source.block.touch()


class InMemorySource(OwnSource):
    """One of our own counters in a block of a TestCase: a source in memory.

    ``real`` is the counter of the row. Callers get ``counter``: the same one, with this
    source and its memory.
    """

    def __init__(self, real: Counter, block: Block) -> None:
        source: Any = real.source
        super().__init__(source.collection, source.node_tag)
        self.real, self.block = real, block
        # Another one after the process forgot it: then start over its row.
        self.memory_beside = memory.current().memory(real.key)
        self.memory = _SteadyMemory(self)
        self.counter = real.changed(source=self, memory=self.memory)
        self.newest: Reservation | None = None
        # The highest explicit number that was above the others.
        self.floor = 0
        # The savepoints around the write of the row, which is undone if one of them is
        # rolled back; None: it is yet to be written.
        self.written_in: list[str] | None = None
        # Max, floor and ticket before it was written; None: there was no row.
        self.before: tuple[int, int, str] | None = None

    def go_on_in(self, block: Block) -> InMemorySource:
        """Return a counter that goes on from here by itself."""
        mine = copy(self)
        mine.block = block
        # Whatever became of it in another test.
        mine.memory_beside = memory.current().memory(self.real.key)
        mine.memory = _SteadyMemory(mine)
        mine.memory.go_on_from(self.memory)
        mine.counter = self.real.changed(source=mine, memory=mine.memory)
        return mine

    @staticmethod
    def in_callers_transaction(using: str) -> bool:
        return False  # its numbers go on, whatever is rolled back

    def row_floor(self, using: str) -> int:
        return self.real.source.row_floor(using)

    def raise_floor(self, using: str, number: int) -> None:
        self.memory.see(number)

    def fill(self, count: int) -> None:
        """Reserve a range, of the size of a real one."""
        counter, held = self.counter, self.memory
        capacity = held.capacity.of_range(*counter.capacities)
        # Until it is held, another thread of the test would reserve the same one.
        with self.block.lock:
            reserved = counter.fetch(capacity, count, highest_row=0)
            held.add(reserved.ranges, reserved.capacity)
        if range_reserved.receivers:
            send_reserved(reserved.reservations[0], counter.using)

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        """Return a range, as a real reservation would make it."""
        collection, node_tag = names = self.key
        with self.block.lock:
            start, size = self.block.start(self.real.key[0]), wanted.size
            met = max(
                # Threads beside the test have reserved up to the first.
                self.memory_beside.stored,
                self.memory.stored,
                start.highest.get(counter_key(*names), 0),
                self.block.highest_key(self),
            )
            top = max(met, wanted.minimum)
            if top > MAX_NUMBER - size:
                # A real one takes the numbers that are left, or says there are none.
                return self.real.source.reserve(using, wanted)
            known = self.real.key, size, met, top
            made = start.ranges.get(known)
            if made is None:
                prefix = start.prefixes.get(node_tag, "")
                numbers, ticket = Range(top + 1, top + size), new_ticket()
                made = Reservation(collection, node_tag, numbers, prefix, ticket, met)
                start.ranges[known] = made
        self.newest, self.written_in = made, None
        return [made]

    def write(self, connection: BaseDatabaseWrapper) -> None:
        """Write the row as a reservation leaves it, unless it has been written."""
        from django_hilo.models import HiLoDocument

        around, highest = self.written_in, self.memory.seen
        # None: a block without a savepoint, whose rollback is that of the block around.
        now = [each for each in connection.savepoint_ids if each]
        if not highest or (around is not None and now[: len(around)] == around):
            return
        key = counter_key(*self.key)
        # Not by the manager, which is what calls this.
        rows: Any = QuerySet(HiLoDocument, using=connection.alias).filter(pk=key)
        row = rows.first()
        found = (row.max, row.floor, row.ticket) if row else None
        self.written_in = now
        if around is None:
            self.before = found
        elif found != self.before:
            return  # it was not undone
        collection, node_tag = self.key
        row = row or HiLoDocument(id=key, collection=collection, node_tag=node_tag)
        row.ticket = new_ticket()
        if self.newest is not None:
            row.low, row.size = self.newest.range.low, self.newest.range.size
            row.reserved_at = timezone.now()
            if self.newest.range.high == highest:
                row.ticket = self.newest.ticket
        row.floor = max(row.floor, self.floor)
        row.max = max(row.max, row.floor, highest)
        rows.bulk_create([row], ignore_conflicts=True)
        rows.bulk_update([row], _COLUMNS)
        column = getattr(self.real.source, "shared_column", None)
        if column is not None:
            column.raise_default(connection.alias, highest)


class Block:
    """The counters of a connection in a block of a TestCase."""

    def __init__(
        self, connection: BaseDatabaseWrapper, atomic: Any, outer: Block | None
    ) -> None:
        self._connection, self._atomic = connection, atomic
        # That of the class, from which a test goes on.
        self._outer = outer
        self.counters: dict[Key, InMemorySource] = {}
        self._starts: dict[DatabaseKey, Start] = {}
        # Read in each test, which may have deleted rows. Not the last that the database
        # gave: MariaDB's does not roll back.
        self._keys: dict[Key, int] = {}
        # Whether somebody may have changed counters or rows in this block: a test must
        # not leave to the next what it reads then.
        self._is_touched = False
        self.lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether the test, or the class, has not ended."""
        return self._atomic in self._connection.atomic_blocks

    def of(self, real: Counter) -> InMemorySource:
        """Return the source of a counter's numbers; that of the class goes on."""
        key = real.key
        with self.lock:
            mine = self.counters.get(key)
            if mine is None and self._outer and key in self._outer.counters:
                mine = self._outer.counters[key].go_on_in(self)
            if mine and mine.memory_beside is not memory.current().memory(key):
                if mine.written_in is None:
                    self._write(mine)
                self.touch()
                mine = None
            self.counters[key] = mine = mine or InMemorySource(real, self)
            return mine

    def write(self) -> None:
        """Write the rows of all counters, for those who look at them."""
        with self.lock:
            outer = self._outer.counters.values() if self._outer else ()
            known = [each.real for each in (*outer, *self.counters.values())]
            for each in map(self.of, known):
                self._write(each)
            self.touch()

    def _write(self, mine: InMemorySource) -> None:
        # Whoever looks sees one schema. After an error no statement is possible.
        is_here = database_key(self._connection.alias) == mine.real.key[0]
        if is_here and not self._connection.needs_rollback:
            with uncounted(self._connection):
                mine.write(self._connection)

    def touch(self) -> None:
        """Read counters and rows again: somebody may have changed them."""
        self._is_touched = True
        self._starts.clear()
        self._keys.clear()

    def highest_key(self, mine: InMemorySource) -> int:
        """Return the highest key of the rows of an integer key, else 0."""
        key, column = mine.real.key, mine.real.source
        if not isinstance(column, ColumnSource):
            return 0
        if key not in self._keys:
            known = self.start(key[0]).columns
            known[key] = column
            # With those that tests of the class needed before.
            here = {
                key: of for key, of in known.items() if of.rows_on == column.rows_on
            }
            with uncounted(connections[column.rows_on]):
                keys = highest_keys([of.column for of in here.values()], column.rows_on)
            self._keys.update(zip(here, keys, strict=True))
        return self._keys[key]

    def start(self, database: DatabaseKey) -> Start:
        """Return what the tables contain before a test; read once unless touched."""
        if self._is_touched:
            return _read(self._connection)
        kept = (self._outer or self)._starts
        if database not in kept:
            kept[database] = _read(self._connection)
        return kept[database]


# Those of blocks that were open when the newest began.
_open: list[Block] = []


def block_on(connection: BaseDatabaseWrapper) -> Block | None:
    """Return the counters of the innermost block of a TestCase; None outside of one."""
    found: Block | None = None
    for atomic in test_blocks(connection.atomic_blocks):
        mine: Block | None = vars(atomic).get(_BLOCK)
        if mine is None:
            if found is None:
                # Ranges of tests that committed, and were flushed.
                memory.current().forget_rows(connection.alias)
            mine = vars(atomic)[_BLOCK] = Block(connection, atomic, found)
            _open[:] = [*(each for each in _open if each.is_open), mine]
        found = mine
    return found


def counter_of_test(real: Counter) -> Counter:
    """Return the counter of the running test; outside of one, the real one."""
    block = block_on(connections[real.using])
    if block is None:
        # A thread beside a test that inserts a row with a number of the test would wait
        # for its end.
        beside = [each.counters.get(real.key) for each in _open if each.is_open]
        seen = (each.memory.seen for each in beside if each)
        real.over = max(seen, default=0)
        return real
    mine = block.of(real)
    if mine.real is not real:
        # Called by another name, or found anew since settings changed.
        mine.real, mine.counter = real, real.changed(source=mine, memory=mine.memory)
    return mine.counter


def write_counters(**kwargs: object) -> None:
    """Write the counters of the running test to their rows.

    In a `TestCase` numbers come out of memory, and the ORM calls this before it reads
    or writes counters. Call it before raw SQL does.
    """
    for connection in connections.all(initialized_only=True):
        block = block_on(connection)
        if block is not None:
            block.write()
        elif kwargs.get("raw") and is_test_process():
            # serialized_rollback: Django flushed without a signal, and restores.
            memory.current().forget_rows(str(kwargs["using"]))


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
