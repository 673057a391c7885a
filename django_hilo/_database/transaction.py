"""What becomes of the work in a caller's transaction.

A `Mark` stands for all work before it, for as long as the transaction is open. Django
does not announce rollbacks, but it keeps a hook of ``on_commit()`` exactly as long as
the work before it can still commit: a hook that is gone and was not called was rolled
back. Rollbacks that bypass ``atomic()`` (``savepoint_rollback()``, raw SQL) are seen by
an ``execute_wrapper``, and understood by `sql_rollbacks`.
"""

from __future__ import annotations

import enum
import os
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any
from weakref import ref

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.sql_rollbacks import Savepoints

# The attribute of a connection.
STATE = "hilo_state"


class Outcome(enum.Enum):
    """What became of the work before a mark."""

    OPEN = "its transaction is open"
    COMMITTED = "it was committed, or nobody can know"
    ROLLED_BACK = "it was rolled back"


class Mark:
    """A moment in a transaction, which tells what became of the work before it."""

    def __init__(self, state: ConnectionState) -> None:
        # Weak, and so is the hook: an object that is kept must keep no connection.
        self._state, self._pid = ref(state), state.pid
        self._outcome = Outcome.OPEN
        self.number = 0
        self.hook: Callable[[], Any] = lambda: None
        # Whether its hook was neither called inside of the transaction nor can be
        # dropped after a commit.
        self.is_certain = True
        # The innermost block of a TestCase around it.
        self.test_block: Any = None
        # What others keep until the end, by keys of their own. The method ``commit()``
        # of each is called as soon as the work is committed.
        self.values: dict[Hashable, Any] = {}
        # Called after the commit, even if SQL rolled back a part of the work.
        self.after_commit: list[Callable[[], None]] = []

    @property
    def outcome(self) -> Outcome:
        """What became of the work by now."""
        if self._outcome is not Outcome.OPEN:
            return self._outcome
        state = self._state()
        if state is not None:
            return state.look_for(self)
        # Its connection is gone, with a transaction that was not committed; in the
        # child of a fork it is the parent's.
        is_lost = self.is_certain and self._pid == os.getpid()
        return Outcome.ROLLED_BACK if is_lost else Outcome.COMMITTED

    def settle(self, outcome: Outcome) -> None:
        """Note what became of the work, and drop what was kept, such as its ranges."""
        self._outcome, self.values = outcome, {}


class ConnectionState:
    """What django-hilo knows of a connection: the marks of its open transaction."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self.pid = os.getpid()
        # Whether counter statements go to the process's own connection in any case.
        self.own_only = False
        # The mark of a statement by which the caller has locked a counter itself.
        self.locks_counter: Mark | None = None
        # By number, oldest first.
        self._marks: dict[int, Mark] = {}
        self._made = 0
        # Django's list of hooks when the marks were last looked for: it makes a new one
        # whenever it drops some.
        self._hooks: list[Any] = []
        self._savepoints = Savepoints()

    def mark(self) -> Mark | None:
        """Return the mark of the work up to now; None if nothing will tell its end."""
        connection = self._connection
        if not connection.in_atomic_block:
            return None
        marks = self.open_marks()
        if marks and marks[-1].number > self._savepoints.last_mark:
            return marks[-1]  # the same rollbacks undo both
        mark, before = Mark(self), len(connection.run_on_commit)
        connection.on_commit(partial(self._committed, mark))
        hooks = connection.run_on_commit
        if len(hooks) == before:
            return None  # tests of a project run hooks at once
        mark.hook = ref(hooks[-1][1])
        # Without autocommit the hook waits for it, and may be dropped after a commit.
        mark.is_certain = connection.commit_on_exit
        blocks = test_blocks(connection.atomic_blocks)
        if blocks:
            mark.test_block = blocks[-1]
        else:
            # Before those of others: one that raises ends the calls (Django). Not in a
            # TestCase, where captureOnCommitCallbacks() counts from the end.
            hooks.insert(len(marks), hooks.pop())
        self._made += 1
        mark.number = self._made
        self._marks[mark.number] = mark
        self._hooks = hooks
        # First in the list, because execute_wrapper() removes the last.
        if self._watch not in connection.execute_wrappers:
            connection.execute_wrappers.insert(0, self._watch)
        return mark

    def open_marks(self) -> list[Mark]:
        """Return the marks of the open transaction, oldest first."""
        if self._connection.run_on_commit is self._hooks:
            return list(self._marks.values())
        marks = list(self._marks.values())
        return [each for each in marks if self.look_for(each) is Outcome.OPEN]

    def look_for(self, mark: Mark) -> Outcome:
        """Return what became of an open mark, and settle those whose hooks are gone."""
        connection, hooks = self._connection, self._connection.run_on_commit
        if hooks is self._hooks:
            return Outcome.OPEN
        if self.pid != os.getpid():
            return Outcome.COMMITTED  # its parent has the transaction
        there = {id(hook) for _, hook, *_ in hooks}
        # Another thread may look just before the hooks of a commit are called: it must
        # not settle what they are about to commit.
        is_mine = connection._thread_ident == threading.get_ident()  # type: ignore[attr-defined]
        if is_mine or connection.allow_thread_sharing:
            self._hooks = hooks
            for each in list(self._marks.values()):
                if id(each.hook()) not in there:
                    self._settle(each, self._outcome_without_hook(each))
        found = id(mark.hook()) in there
        return Outcome.OPEN if found else self._outcome_without_hook(mark)

    def _outcome_without_hook(self, mark: Mark) -> Outcome:
        # Within a TestCase, rollbacks are those of savepoints, whose SQL is seen. The
        # hooks are gone because somebody is about to call them.
        is_called = mark.test_block in self._connection.atomic_blocks
        certain = mark.is_certain and not is_called
        return Outcome.ROLLED_BACK if certain else Outcome.COMMITTED

    def _settle(self, mark: Mark, outcome: Outcome) -> None:
        mark.settle(outcome)
        del self._marks[mark.number]
        if not self._marks:
            self._savepoints, self._hooks = Savepoints(), []
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
        marks = list(self._marks.values())
        kept = [value for each in marks for value in each.values.values()]
        for each in marks:
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
            result = execute(sql, params, many, context)
        except Error as error:
            connection = self._connection
            if dialect_of(connection).has_rolled_back(connection, error):
                self._roll_back_to(0)
            raise
        if isinstance(sql, bytes):
            sql = sql.decode(errors="replace")
        elif not isinstance(sql, str):
            # psycopg's sql.SQL and its like.
            sql = sql.as_string(self._connection.connection)
        self.open_marks()  # after a rollback, these are no longer watched
        undone = self._savepoints.note(sql, self._made)
        if undone is not None:
            self._roll_back_to(*undone)
        return result

    def _roll_back_to(self, number: int, is_certain: bool = True) -> None:
        outcome = Outcome.ROLLED_BACK if is_certain else Outcome.COMMITTED
        for mark in list(self._marks.values()):
            if mark.number > number:
                self._settle(mark, outcome)


def state_of(connection: BaseDatabaseWrapper) -> ConnectionState:
    """Return the state of a connection; a new one in the child of a fork."""
    state: ConnectionState | None = vars(connection).get(STATE)
    if state is None or state.pid != os.getpid():
        state = vars(connection)[STATE] = ConnectionState(connection)
    return state


def test_blocks(atomic_blocks: list[Any]) -> list[Any]:
    """Return those of a TestCase, or of pytest-django's ``db``; rolled back."""
    return [each for each in atomic_blocks if getattr(each, "_from_testcase", False)]
