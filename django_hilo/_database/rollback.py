"""Detect whether work inside a caller's transaction can still commit.

Django does not announce rollbacks. But it keeps a hook of ``on_commit()`` exactly as
long as the work before it can still commit: a hook that is gone from ``run_on_commit``
and was not called was rolled back. Rollbacks that bypass ``atomic()``
(``savepoint_rollback()``, raw SQL) are seen by an ``execute_wrapper``.
"""

import re
import sqlite3
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper


class RollbackDetector:
    """Tell whether all work before its creation can still commit."""

    def __init__(
        self, connection: BaseDatabaseWrapper, on_commit: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._on_commit = on_commit
        # Set at a rollback that Django does not know of.
        self.is_invalidated = False
        self._place = len(connection.run_on_commit)
        connection.on_commit(self._committed)

    def is_alive(self) -> bool:
        """Whether the transaction is open, and the work before it not rolled back."""
        hooks, mine = self._connection.run_on_commit, self._committed
        if self._place >= len(hooks) or hooks[self._place][1] != mine:
            # It moves only where a hook goes first, or such a hook is rolled back.
            places = (place for place, hook in enumerate(hooks) if hook[1] == mine)
            self._place = next(places, len(hooks))
        return self._place < len(hooks) and not self.is_invalidated

    def go_first(self) -> None:
        """Be called before others' hooks: one that raises ends the calls (Django)."""
        hooks = self._connection.run_on_commit
        hooks.insert(0, hooks.pop(self._place))

    def _committed(self) -> None:
        # captureOnCommitCallbacks(execute=True) calls hooks of an open transaction.
        if not self.is_invalidated and not self._connection.in_atomic_block:
            self._on_commit()


class RollbackWatcher:
    """Invalidate the detectors whose work is rolled back by plain SQL."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        # The number of each detector, for as long as Django keeps its hook, or its
        # owner keeps it.
        self._detectors: WeakKeyDictionary[RollbackDetector, int] = WeakKeyDictionary()
        self._made = 0
        # The number of detectors made before each of Django's savepoints. Other names
        # are left out, since they may be used twice.
        self._savepoints: dict[str, int] = {}

    def detector(self, on_commit: Callable[[], None]) -> RollbackDetector:
        """Return a new detector; watch the connection while one is alive."""
        detector = RollbackDetector(self._connection, on_commit)
        self._made += 1
        self._detectors[detector] = self._made
        # First in the list, because execute_wrapper() removes the last.
        if self not in self._connection.execute_wrappers:
            self._connection.execute_wrappers.insert(0, self)
        return detector

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
            self._invalidate_from(self._savepoints.get(to["name"], 0) if to else 0)
        elif self._rolled_back_by_itself():
            self._invalidate_from(0)
        if not any(detector.is_alive() for detector in self._detectors):
            self._detectors.clear()
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

    def _invalidate_from(self, place: int) -> None:
        for detector, made in list(self._detectors.items()):
            if made > place:
                detector.is_invalidated = True


_NAME = r"""["`]?(?P<name>s\d+_x\d+)["`]?"""
_SAVEPOINT = re.compile(rf"SAVEPOINT {_NAME}")
_ROLLBACK = re.compile(
    r"(?:\A|;)(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:ROLLBACK|ABORT)\b",
    re.IGNORECASE | re.DOTALL,
)
_ROLLBACK_TO = re.compile(rf"ROLLBACK TO SAVEPOINT {_NAME}")
