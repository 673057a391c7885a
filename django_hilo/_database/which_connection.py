"""Which connection changes a counter: the caller's, or the process's own.

Inside a caller's transaction it is the process's own: on the caller's, the row would
stay locked until the caller's commit, and a rollback would give the range out again. In
autocommit it is the caller's, but for MySQL and MariaDB, whose waits are bounded by
variables of the session.

A range is reserved on the caller's connection, and bound to the transaction, on SQLite,
which has one writer at a time, in a transaction in which `loaddata` has saved a
counter, in a TestCase for counters that are not in memory (`_allocation.in_tests`), and
in a migration that draws from PostgreSQL's sequences (`sources.key_sequence`).
"""

from collections.abc import Callable
from functools import partial

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.own_connection import OwnConnection, Result, of_this_process
from django_hilo._database.transaction import STATE, Outcome, state_of, test_blocks
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError


def in_callers_transaction(using: str) -> bool:
    """Whether a range reserved now would belong to the caller's transaction."""
    connection = connections[using]
    if dialect_of(connection).has_one_writer:
        return not commits_alone(connection)
    if not connection.in_atomic_block:
        return False
    if test_blocks(connection.atomic_blocks):
        return True
    mark = state_of(connection).locks_counter
    return mark is not None and mark.outcome is Outcome.OPEN


def note_own_lock(connection: BaseDatabaseWrapper) -> None:
    """Let reservations use the open transaction, in which a fixture locks a counter."""
    state = state_of(connection)
    state.locks_counter = state.mark()


def commits_alone(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement can be sent now, and commits by itself; no query."""
    if connection.in_atomic_block:
        return False
    if connection.connection is None:
        return bool(connection.settings_dict["AUTOCOMMIT"])
    return connection.autocommit and not dialect_of(connection).is_busy(connection)


def use_own(alias: str) -> None:
    """Force counter statements of this thread onto the process's own connection."""
    state_of(connections[alias]).own_only = True


def on_right_connection(
    operate: Callable[[str], Result],
    connection: BaseDatabaseWrapper,
    bound: bool,
    has_failed: bool,
) -> Result:
    """Call ``operate`` with the alias for a counter's statements; return its result.

    It is that of ``connection``, the caller's, if ``bound`` (`in_callers_transaction`).
    If the caller's ``has_failed`` but is open, it is left alone.
    """
    alias, dialect = connection.alias, dialect_of(connection)
    if bound and not dialect.has_one_writer and dialect.is_busy(connection):
        raise HiLoError(
            f"The connection {alias!r} is executing a statement, such as COPY or "
            f"executemany(), and cannot change a counter meanwhile. Take the ids "
            f"before the statement, with next_ids() or next_gapless_numbers()."
        )
    if bound or not (
        dialect.always_own_connection
        or getattr(vars(connection).get(STATE), "own_only", False)
        or not commits_alone(connection)
        or (has_failed and connection.connection is not None)
    ):
        return operate(alias)
    own = of_this_process().setdefault(alias, OwnConnection(alias))
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    return own.hold(partial(own.run, operate, connection), longest)
