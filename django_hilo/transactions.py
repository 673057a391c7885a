"""What the caller's transaction does to what was taken inside it.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction: its numbers may leave only there, it joins the pool when the transaction
commits, and it is dropped when it, or a savepoint around the reservation, rolls back.

Django tells of no rollback. But it keeps the hooks of ``on_commit()`` exactly as long
as what was done when they were registered can still commit, so an entry that is gone
from ``run_on_commit`` without having been called was rolled back. Rollbacks that pass
Django's ``atomic()`` by (``savepoint_rollback()``, raw SQL) are seen by an
``execute_wrapper``.
"""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo import pool
from django_hilo.pool import Counter, CounterKey, Held, Pace, Share, take_from
from django_hilo.reservation import Reservation


class Bond:
    """Tells whether what was done when it was made can still commit."""

    def __init__(
        self, connection: BaseDatabaseWrapper, on_commit: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._on_commit = on_commit
        self._broken = False
        self._place = len(connection.run_on_commit)
        connection.on_commit(self._committed)

    def holds(self) -> bool:
        """Whether the transaction is open and nothing around the bond rolled back."""
        if self._broken:
            return False
        hooks = self._connection.run_on_commit
        # Rollbacks to savepoints only ever shorten the list: looked up once, the place
        # is right until then.
        if self._place < len(hooks) and hooks[self._place][1] == self._committed:
            return True
        for place, hook in enumerate(hooks):
            if hook[1] == self._committed:
                self._place = place
                return True
        return False

    def breaks(self) -> None:
        """Note a rollback that Django does not know of."""
        self._broken = True

    def _committed(self) -> None:
        # captureOnCommitCallbacks(execute=True) calls hooks of an open transaction.
        if not self._broken and not self._connection.in_atomic_block:
            self._on_commit()


class Ledger:
    """What the open transaction of one connection has reserved and raised."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._pool = pool.current()
        self._ranges: dict[CounterKey, list[tuple[Bond, Held]]] = {}
        self._paces: dict[CounterKey, tuple[Bond, Pace]] = {}
        self._floors: dict[CounterKey, list[Floor]] = {}
        self._watch = Watch(connection)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Ledger:
        """Return the ledger of a connection; a child of a fork starts a new one."""
        ledger = vars(connection).get("hilo_ledger")
        if ledger is None or ledger._pool is not pool.current():
            ledger = cls(connection)
            vars(connection)["hilo_ledger"] = ledger
        return ledger

    def take(self, counter: Counter, count: int) -> list[Share] | None:
        """Take numbers of ranges that this transaction has reserved."""
        with counter.lock:
            entries = self._valid(counter.key)
            return take_from(deque(held for _, held in entries), count)

    def next_capacity(self, counter: Counter, least: int, most: int) -> int:
        """Return the capacity of the range to reserve now in this transaction."""
        bond, pace = self._paces.get(counter.key, (None, None))
        if bond is not None and pace is not None and bond.holds():
            return pace.next(least, least, most)
        return counter.next_capacity(least, most)

    def add(
        self, counter: Counter, reservation: Reservation, capacity: int, count: int
    ) -> list[Share] | None:
        """Bind a range to the transaction, and take numbers of it."""
        key, held, pace = counter.key, Held(reservation), Pace()
        if not self._connection.in_atomic_block:
            # Without autocommit and atomic() nothing tells of the end of a transaction.
            return [held.take(count)]
        bond = self._watch.bond(lambda: self._promote(key, held, capacity))
        pace.note(capacity)
        self._paces[key] = bond, pace
        with counter.lock:
            self._valid(key).append((bond, held))
        return self.take(counter, count)

    def _valid(self, key: CounterKey) -> list[tuple[Bond, Held]]:
        entries = self._ranges.get(key, [])
        entries[:] = [
            (bond, held) for bond, held in entries if held.left and bond.holds()
        ]
        return self._ranges.setdefault(key, entries)

    def _promote(self, key: CounterKey, held: Held, capacity: int) -> None:
        if self._pool is pool.current():
            self._pool.counter(key).promote(held, capacity)

    def drop(self, counter: Counter, numbers: Iterable[int]) -> None:
        """Drop the ranges that would give one of these numbers."""
        with counter.lock:
            entries = self._valid(counter.key)
            entries[:] = [e for e in entries if not e[1].would_give(numbers)]

    def floor(self, key: CounterKey) -> Floor | None:
        """Return the newest floor of this transaction that did not roll back."""
        floors = self._floors.get(key, [])
        while floors and not floors[-1].bond.holds():
            floors.pop()
        return floors[-1] if floors else None

    def note_floor(
        self, key: CounterKey, number: int, on_commit: Callable[[Floor], None]
    ) -> Floor:
        """Note a floor until the end of the transaction, when it is handed over."""
        bond = self._watch.bond(lambda: on_commit(floor))
        before = self.floor(key)
        floor = Floor(bond, number, before.pace if before else Pace())
        self._floors.setdefault(key, []).append(floor)
        return floor


class Floor:
    """The highest explicit number that a transaction has inserted, and its pace."""

    def __init__(self, bond: Bond, number: int, pace: Pace) -> None:
        self.bond = bond
        self.number = number
        self.pace = pace


class Watch:
    """Breaks the bonds of a connection when SQL rolls back what they stand for."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._bonds: list[tuple[int, Bond]] = []
        # Savepoints made since the first bond, with their place among the bonds.
        self._savepoints: dict[str, int] = {}
        self._made = 0

    def bond(self, on_commit: Callable[[], None]) -> Bond:
        """Make a bond, and watch the connection's statements while any holds."""
        self._bonds = [(made, bond) for made, bond in self._bonds if bond.holds()]
        if not self._bonds:
            self._savepoints.clear()
        bond = Bond(self._connection, on_commit)
        self._made += 1
        self._bonds.append((self._made, bond))
        # First in the list: execute_wrapper() of others pops the last.
        if self not in self._connection.execute_wrappers:
            self._connection.execute_wrappers.insert(0, self)
        return bond

    def __call__(
        self, execute: Any, sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        try:
            return execute(sql, params, many, context)
        finally:
            self._note(sql if isinstance(sql, str) else repr(sql))

    def _note(self, sql: str) -> None:
        savepoint = _SAVEPOINT.match(sql)
        if savepoint:
            # Where a name is used again, the older savepoint counts: it undoes more.
            self._savepoints.setdefault(savepoint["name"].upper(), self._made)
        elif _ROLLBACK.search(sql):
            to = _ROLLBACK_TO.fullmatch(sql)
            self._break_from(self._savepoints.get(to["name"].upper(), 0) if to else 0)
        elif self._rolled_back_by_itself():
            self._break_from(0)
        if not any(bond.holds() for _, bond in self._bonds):
            self._bonds.clear()
            self._savepoints.clear()
            if self in self._connection.execute_wrappers:
                self._connection.execute_wrappers.remove(self)

    def _rolled_back_by_itself(self) -> bool:
        # SQLite ends the transaction after some errors, such as a full disk.
        connection = self._connection.connection
        return isinstance(connection, sqlite3.Connection) and (
            not connection.in_transaction
        )

    def _break_from(self, place: int) -> None:
        for made, bond in self._bonds:
            if made > place:
                bond.breaks()


_NAME = r"""["`]?(?P<name>[^"`\s;]+)["`]?"""
_SAVEPOINT = re.compile(rf"\s*SAVEPOINT\s+{_NAME}", re.IGNORECASE)
_ROLLBACK = re.compile(
    r"(?:\A|;)(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:ROLLBACK|ABORT)\b",
    re.IGNORECASE | re.DOTALL,
)
_ROLLBACK_TO = re.compile(
    rf"\s*ROLLBACK\s+(?:TRANSACTION\s+|WORK\s+)?TO\s+(?:SAVEPOINT\s+)?{_NAME}\s*;?\s*",
    re.IGNORECASE,
)
