"""What becomes of the work in a caller's transaction.

A `Mark` stands for all work before it, for as long as the transaction is open. Django
does not announce rollbacks, but it keeps a hook of ``on_commit()`` exactly as long as
the work before it can still commit: a hook that is gone and was not called was rolled
back. Rollbacks that bypass ``atomic()`` (``savepoint_rollback()``, raw SQL) are seen by
an ``execute_wrapper``.
"""

from __future__ import annotations

import enum
import os
import re
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of

# The attribute of a connection.
STATE = "hilo_state"


class Outcome(enum.Enum):
    """What became of the work before a mark."""

    OPEN = "its transaction is open"
    COMMITTED = "it was committed, or nobody can know"
    ROLLED_BACK = "it was rolled back"


class Mark:
    """A moment in a transaction, which tells what became of the work before it."""

    def __init__(
        self, state: ConnectionState | None, outcome: Outcome = Outcome.OPEN
    ) -> None:
        self._state = state  # while it is open
        self._outcome = outcome
        self.number = 0
        self.hook: Any = None
        # Whether the hook goes when the work is rolled back, and only then.
        self.is_certain = True
        # What others keep until the end, by keys of their own. The method ``commit()``
        # of each is called as soon as the work is committed.
        self.values: dict[Hashable, Any] = {}
        # Called after the commit, even if SQL rolled back a part of the work.
        self.after_commit: list[Callable[[], None]] = []

    @property
    def outcome(self) -> Outcome:
        """What became of the work by now."""
        return self._outcome if self._state is None else self._state.look_for(self)

    @property
    def is_rolled_back(self) -> bool:
        """Whether the work certainly was rolled back."""
        return self.outcome is Outcome.ROLLED_BACK

    def settle(self, outcome: Outcome) -> None:
        """Note what became of the work, and keep nothing any longer."""
        self._outcome, self._state, self.values = outcome, None, {}

    def __reduce__(self) -> Any:
        # Another process cannot learn what becomes of it later.
        return Mark, (None, self.outcome)

    def __copy__(self) -> Mark:
        return self

    def __deepcopy__(self, memo: object) -> Mark:
        return self


class ConnectionState:
    """What django-hilo knows of a connection: its open marks, oldest first."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self.pid = os.getpid()
        # Whether counter statements go to the process's own connection in any case.
        self.own_only = False
        # The mark of a statement by which the caller has locked a counter itself.
        self.locks_counter: Mark | None = None
        self._marks: list[Mark] = []
        self._made = 0
        # How many marks had been made before each of Django's open savepoints. Other
        # names are left out, since they may be used twice.
        self._savepoints: dict[str, int] = {}

    def mark(self) -> Mark | None:
        """Return the mark of the work up to now; None if nothing will tell its end."""
        connection = self._connection
        if not connection.in_atomic_block:
            return None
        marks = self.open_marks()
        last_savepoint = next(reversed(self._savepoints.values()), 0)
        if marks and marks[-1].number > last_savepoint:
            return marks[-1]  # the same rollbacks undo both
        mark, before = Mark(self), len(connection.run_on_commit)
        connection.on_commit(partial(self._committed, mark))
        hooks = connection.run_on_commit
        if len(hooks) == before:
            return None  # tests of a project run hooks at once
        mark.hook = hooks[-1][1]
        # Without autocommit the hook waits for it, and may be dropped after a commit.
        mark.is_certain = connection.commit_on_exit
        if not test_blocks(connection):
            # Before those of others: one that raises ends the calls (Django). Not in a
            # TestCase, where captureOnCommitCallbacks() counts from the end.
            hooks.insert(len(marks), hooks.pop())
        self._made += 1
        mark.number = self._made
        self._marks.append(mark)
        # First in the list, because execute_wrapper() removes the last.
        if self._watch not in connection.execute_wrappers:
            connection.execute_wrappers.insert(0, self._watch)
        return mark

    def open_marks(self) -> list[Mark]:
        """Return the marks of the open transaction, oldest first."""
        for mark in self._marks.copy():
            self.look_for(mark)
        return self._marks.copy()

    def look_for(self, mark: Mark) -> Outcome:
        """Return what became of an open mark, and settle it if its hook is gone."""
        connection = self._connection
        for _, hook, *_ in connection.run_on_commit:
            if hook is mark.hook:
                return Outcome.OPEN
        outcome = Outcome.ROLLED_BACK if mark.is_certain else Outcome.COMMITTED
        # Another thread may look between a commit and the call of the hook.
        if connection._thread_ident == threading.get_ident():  # type: ignore[attr-defined]
            self._settle(mark, outcome)
        return outcome

    def _settle(self, mark: Mark, outcome: Outcome) -> None:
        mark.settle(outcome)
        self._marks.remove(mark)
        if not self._marks:
            self._savepoints.clear()
            if self._watch in self._connection.execute_wrappers:
                self._connection.execute_wrappers.remove(self._watch)

    def _committed(self, mark: Mark) -> None:
        if self.pid != os.getpid():
            return
        if self._connection.in_atomic_block:
            # As by captureOnCommitCallbacks(execute=True).
            mark.is_certain = False
            return
        # All at once: the other hooks are no longer in Django's list.
        kept = [value for each in self._marks for value in each.values.values()]
        for each in self._marks.copy():
            self._settle(each, Outcome.COMMITTED)
        for value in kept:
            value.commit()
        after, mark.after_commit = mark.after_commit, []
        for act in after:
            act()

    def _watch(
        self, execute: Any, sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        try:
            return execute(sql, params, many, context)
        except Error as error:
            connection = self._connection
            if dialect_of(connection).has_rolled_back(connection, error):
                self._roll_back_to(0)
            raise
        finally:
            self._note(sql)

    def _note(self, sql: Any) -> None:
        if isinstance(sql, bytes):
            sql = sql.decode(errors="replace")
        elif not isinstance(sql, str):
            # psycopg's sql.SQL and its like.
            sql = sql.as_string(self._connection.connection)
        if savepoint := _SAVEPOINT.match(sql):
            name = savepoint["name"]
            if savepoint["release"]:
                self._savepoints.pop(name, None)
            else:
                self._savepoints[name] = self._made
        elif _ROLLBACK.search(sql):
            to = _ROLLBACK_TO.fullmatch(sql)
            self._roll_back_to(self._savepoints.get(to["name"], 0) if to else 0)
        if not self._connection.run_on_commit:
            self.open_marks()  # settles them

    def _roll_back_to(self, number: int) -> None:
        for mark in self._marks.copy():
            if mark.number > number:
                self._settle(mark, Outcome.ROLLED_BACK)


def state_of(connection: BaseDatabaseWrapper) -> ConnectionState:
    """Return the state of a connection; a new one in the child of a fork."""
    state: ConnectionState | None = vars(connection).get(STATE)
    if state is None or state.pid != os.getpid():
        state = vars(connection)[STATE] = ConnectionState(connection)
    return state


def test_blocks(connection: BaseDatabaseWrapper) -> list[Any]:
    """Return the blocks of a TestCase, or of pytest-django's ``db``; rolled back."""
    blocks = connection.atomic_blocks
    return [each for each in blocks if getattr(each, "_from_testcase", False)]


_NAME = r"""["`]?(?P<name>s\d+_x\d+)["`]?"""
_SAVEPOINT = re.compile(rf"(?P<release>RELEASE )?SAVEPOINT {_NAME}")
_ROLLBACK = re.compile(
    r"(?:\A|;)(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:ROLLBACK|ABORT)\b",
    re.IGNORECASE | re.DOTALL,
)
_ROLLBACK_TO = re.compile(rf"ROLLBACK TO SAVEPOINT {_NAME}")
