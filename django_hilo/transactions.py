"""Whether what was done inside a caller's transaction can still commit.

Django tells of no rollback. But it keeps the hooks of ``on_commit()`` exactly as long
as what was done when they were registered can still commit, so an entry that is gone
from ``run_on_commit`` without having been called was rolled back. Rollbacks that pass
Django's ``atomic()`` by (``savepoint_rollback()``, raw SQL) are seen by an
``execute_wrapper``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any
from weakref import ref

from django.db.backends.base.base import BaseDatabaseWrapper


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

    @property
    def is_broken(self) -> bool:
        """Whether a rollback was noted that Django does not know of."""
        return self._broken

    def breaks(self) -> None:
        """Note a rollback that Django does not know of."""
        self._broken = True

    def _committed(self) -> None:
        # captureOnCommitCallbacks(execute=True) calls hooks of an open transaction.
        if not self._broken and not self._connection.in_atomic_block:
            self._on_commit()


class Watch:
    """Breaks the bonds of a connection when SQL rolls back what they stand for."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        # A bond lives as long as Django keeps its hook, or whoever asked for it.
        self._bonds: list[tuple[int, ref[Bond]]] = []
        self._prune_at = _PRUNE_AT
        # Django's savepoints since the first bond, with their place among the bonds.
        # Other names may be used again, so that no place could be told.
        self._savepoints: dict[str, int] = {}
        self._made = 0

    def bond(self, on_commit: Callable[[], None]) -> Bond:
        """Make a bond, and watch the connection's statements while any holds."""
        if len(self._bonds) >= self._prune_at:
            self._bonds = [each for each in self._bonds if _holds(each[1])]
            # Looking at all of them for each new one would take quadratic time.
            self._prune_at = max(_PRUNE_AT, 2 * len(self._bonds))
        if not any(_holds(known) for _, known in self._bonds):
            self._bonds.clear()
            self._savepoints.clear()
        bond = Bond(self._connection, on_commit)
        self._made += 1
        self._bonds.append((self._made, ref(bond)))
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
            self._note(sql if isinstance(sql, str) else self._text(sql))

    def _text(self, composed: Any) -> str:
        if isinstance(composed, bytes):
            return composed.decode(errors="replace")
        # psycopg's sql.SQL and its like.
        return str(composed.as_string(self._connection.connection))

    def _note(self, sql: str) -> None:
        savepoint = _SAVEPOINT.match(sql)
        if savepoint:
            self._savepoints[savepoint["name"]] = self._made
        elif _ROLLBACK.search(sql):
            to = _ROLLBACK_TO.fullmatch(sql)
            self._break_from(self._savepoints.get(to["name"], 0) if to else 0)
        elif self._rolled_back_by_itself():
            self._break_from(0)
        if not any(_holds(bond) for _, bond in self._bonds):
            self._bonds.clear()
            self._savepoints.clear()
            if self in self._connection.execute_wrappers:
                self._connection.execute_wrappers.remove(self)

    def _rolled_back_by_itself(self) -> bool:
        # SQLite ends the transaction after some errors, such as a full disk.
        connection = self._connection.connection
        return (
            self._connection.in_atomic_block
            and isinstance(connection, sqlite3.Connection)
            and not connection.in_transaction
        )

    def _break_from(self, place: int) -> None:
        for made, known in self._bonds:
            bond = known()
            if made > place and bond is not None:
                bond.breaks()


def _holds(known: ref[Bond]) -> bool:
    bond = known()
    return bond is not None and bond.holds()


_PRUNE_AT = 16


_NAME = r"""["`]?(?P<name>s\d+_x\d+)["`]?"""
_SAVEPOINT = re.compile(rf"SAVEPOINT {_NAME}")
_ROLLBACK = re.compile(
    r"(?:\A|;)(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:ROLLBACK|ABORT)\b",
    re.IGNORECASE | re.DOTALL,
)
_ROLLBACK_TO = re.compile(rf"ROLLBACK TO SAVEPOINT {_NAME}")
