"""Change a counter in short transactions: retried as a whole after a deadlock, say."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo._database.own_connection import (
    POOL_SIZE,
    Result,
    clock,
    close_unused,
)
from django_hilo._database.which_connection import (
    in_callers_transaction,
    on_right_connection,
)
from django_hilo.conf import settings
from django_hilo.exceptions import ConcurrencyError, ReservationTimeout, TableMissing

logger = logging.getLogger("django_hilo")

# Flat, because pauses that double starve a node of a busy cluster (measured on Galera).
_PAUSE = 0.003
_PAUSE_BEFORE_RECONNECTING = 0.25


@contextmanager
def short_transaction(
    db: str, *, locks_row: bool = False
) -> Iterator[BaseDatabaseWrapper]:
    """Yield the connection, in a transaction with bounded waits, or a savepoint.

    If it ``locks_row``, which others may wait for too, its statements do nothing else
    for long.
    """
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
                dialect_of(connection).begin(connection, locks_row=locks_row)
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
    - ``bound``: whether ``operate`` works on the caller's connection, where nothing is
      tried again; None: as `in_callers_transaction` says.
    """
    connection = connections[using]
    dialect = dialect_of(connection)
    if bound is None:
        bound = in_callers_transaction(using)
    began, level, reconnects = clock(), logging.WARNING, False
    # Counted too, for tests that freeze even this clock.
    slept = 0.0
    tried = began

    def timed(db: str) -> Result:
        nonlocal tried
        tried = clock()  # not the wait for another thread's reservation
        return operate(db)

    while True:
        try:
            return on_right_connection(timed, connection, bound, reconnects)
        except Error as error:
            kind = classify(error, connection)
            if kind is ErrorKind.LOCKED:
                waited = clock() - tried
                limit = "a lower limit of the database, or a person, canceled it"
                if waited >= settings.LOCK_TIMEOUT:
                    limit = f"HILO['LOCK_TIMEOUT'] is {settings.LOCK_TIMEOUT:g} s"
                raise ReservationTimeout(
                    f"{what} on {using!r} stayed locked for {waited:.1f} s: {limit} "
                    f"({error}). Find the transaction that locks the row; it may be "
                    f"the one that asks for this id."
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
