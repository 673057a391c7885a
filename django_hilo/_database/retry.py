"""Change a counter in short transactions, on the connection that is right for it.

Inside a caller's transaction that is the process's own connection: on the caller's, the
row would stay locked until the caller's commit, and a rollback would give the range out
again. SQLite has one writer at a time, and a TestCase rolls everything back: both use
the caller's connection, and the range is bound to its transaction.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo._database.own_connection import (
    POOL_SIZE,
    OwnConnection,
    Result,
    clock,
    close_unused,
    of_this_process,
)
from django_hilo._database.transaction import STATE, Outcome, state_of, test_blocks
from django_hilo.conf import settings
from django_hilo.exceptions import (
    ConcurrencyError,
    HiLoError,
    ReservationTimeout,
    TableMissing,
)

logger = logging.getLogger("django_hilo")

# Flat, because pauses that double starve a node of a busy cluster (measured on Galera).
_PAUSE = 0.003
_PAUSE_BEFORE_RECONNECTING = 0.25


def in_callers_transaction(using: str) -> bool:
    """Whether a range reserved now would belong to the caller's transaction."""
    connection = connections[using]
    if dialect_of(connection).has_one_writer:
        return not commits_alone(connection)
    if not connection.in_atomic_block:
        return False
    if test_blocks(connection):
        return True
    mark = state_of(connection).locks_counter
    return mark is not None and mark.outcome is Outcome.OPEN


def note_own_lock(connection: BaseDatabaseWrapper) -> None:
    """Let reservations use the open transaction, which has locked a counter itself."""
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


def run(
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


@contextmanager
def short_transaction(db: str) -> Iterator[BaseDatabaseWrapper]:
    """Yield the connection, in a transaction with bounded waits, or a savepoint."""
    connection = connections[db]
    is_nested = connection.in_atomic_block
    # Plain SQL began a transaction: atomic() can only make a savepoint in it.
    is_unknown = dialect_of(connection).is_busy(connection)
    if is_unknown:
        connection.autocommit = False
    try:
        with transaction.atomic(using=db):
            if not is_nested:
                # Only now is it connected, and MariaDB told from MySQL.
                dialect_of(connection).begin(connection)
            yield connection
    finally:
        if is_unknown:
            connection.autocommit = True


def retry(
    operate: Callable[[str], Result],
    using: str,
    what: str,
    *,
    if_missing: str | None = None,
    retry_for: float | None = None,
    bound: bool | None = None,
) -> Result:
    """Call ``operate`` until it succeeds or time is over; return its result.

    - ``operate``: gets the alias to work on, and does all of its work in one
      `short_transaction`.
    - ``using``: the caller's alias.
    - ``what``: the name of the counter in messages.
    - ``if_missing``: the message if the counter's table is missing. None: the table is
      ours, and may also be of an older version.
    - ``retry_for``: seconds; None: ``HILO["RETRY_FOR"]``.
    - ``bound``: the result of `in_callers_transaction`, if it is known.
    """
    connection = connections[using]
    dialect = dialect_of(connection)
    if bound is None:
        bound = in_callers_transaction(using)
    began, level, reconnects = clock(), logging.WARNING, False
    # Counted too, for tests that freeze even this clock.
    slept = 0.0
    while True:
        try:
            return run(operate, connection, bound, reconnects)
        except Error as error:
            kind = classify(error, connection)
            if kind is ErrorKind.LOCKED:
                raise ReservationTimeout(
                    f"{what} on {using!r} stayed locked for {settings.LOCK_TIMEOUT:g} "
                    f"s (HILO['LOCK_TIMEOUT']), or until a shorter limit, such as "
                    f"statement_timeout, or a person canceled the statement: {error}. "
                    f"Find the transaction that locks the row; it may be the one that "
                    f"asks for this id."
                ) from error
            is_old = kind is ErrorKind.NO_COLUMN and if_missing is None
            if kind is ErrorKind.NO_TABLE or is_old:
                raise TableMissing(
                    if_missing
                    or f"The tables of django_hilo on {using!r} are missing or "
                    f"outdated. In a migration, add ('django_hilo', '0001_initial') "
                    f"to its dependencies. Otherwise, run: python manage.py migrate "
                    f"django_hilo --database={using}"
                ) from error
            if kind in {ErrorKind.NO_COLUMN, ErrorKind.OTHER}:
                raise
            if bound:
                raise ConcurrencyError(
                    f"{what} could not be changed inside the transaction on {using!r}: "
                    f"{error}. Repeat the transaction.{dialect.prevents_conflicts}"
                ) from error
            is_full = dialect.is_full(error)
            if is_full:
                close_unused()  # of other aliases
            longest = settings.RETRY_FOR if retry_for is None else retry_for
            if max(clock() - began, slept) > longest:
                pool = f" {POOL_SIZE}" if is_full else ""
                raise ConcurrencyError(
                    f"The counter on {using!r} could not be changed within {longest:g} "
                    f"s (HILO['RETRY_FOR']): {error}. No number was given twice; try "
                    f"again when the database responds.{pool}"
                ) from error
            text = "Retrying the counter on %r for up to %g s (HILO['RETRY_FOR']): %s"
            logger.log(level, text, using, longest, error)
            level = logging.DEBUG
        reconnects = kind is ErrorKind.RECONNECT
        longest_pause = _PAUSE_BEFORE_RECONNECTING if reconnects else _PAUSE
        pause = random.uniform(0, longest_pause)  # noqa: S311 - no secret, only a pause
        time.sleep(pause)
        slept += pause
