"""Change a counter in a short transaction, repeated as a whole after some errors."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.connection import (
    counter_connection,
    has_autocommit,
    in_callers_transaction,
    schema_of,
)
from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo.conf import settings
from django_hilo.exceptions import ConcurrencyError, ReservationTimeout, TableMissing

logger = logging.getLogger("django_hilo")

# Flat, because pauses that double starve a node of a busy cluster (measured on Galera).
_PAUSE = 0.003
_PAUSE_BEFORE_RECONNECTING = 0.25

Result = TypeVar("Result")


def retry(
    operate: Callable[[str], Result],
    using: str,
    what: str,
    if_missing: str,
    retry_for: float | None = None,
) -> Result:
    """Call ``operate`` until it succeeds or time is over; return its result.

    - ``operate``: gets the alias to work on, and does all of its work in one
      `short_transaction`.
    - ``using``: the caller's alias.
    - ``what``: the name of the counter in messages.
    - ``if_missing``: the message if the counter's table is missing.
    - ``retry_for``: seconds; None: ``HILO["RETRY_FOR"]``.
    """
    connection = connections[using]
    bound = in_callers_transaction(connection)
    lock_timeout, setting = settings.LOCK_TIMEOUT, settings.RETRY_FOR
    retry_for = setting if retry_for is None else retry_for
    give_up_at = time.monotonic() + retry_for
    level = logging.WARNING
    while True:
        try:
            with counter_connection(connection, bound, lock_timeout + setting) as db:
                return _once(operate, db)
        except Error as error:
            kind = classify(error, connection)
            _raise_final(kind, error, using, what, if_missing)
            if bound:
                raise ConcurrencyError(
                    f"No range could be reserved inside the transaction on {using!r}: "
                    f"{error}. It is not tried again, since only you can repeat your "
                    f'transaction; on SQLite, OPTIONS["transaction_mode"] = '
                    f'"IMMEDIATE" avoids most of these.'
                ) from error
            if time.monotonic() > give_up_at:
                raise ConcurrencyError(
                    f"The counter on {using!r} could not be changed for {retry_for:g} "
                    f"s (HILO['RETRY_FOR']): {error}. No number was given twice; try "
                    f"again when the database answers."
                ) from error
            logger.log(level, "The counter on %r is tried again: %s", using, error)
            level = logging.DEBUG
        reconnects = kind is ErrorKind.RECONNECT
        pause = _PAUSE_BEFORE_RECONNECTING if reconnects else _PAUSE
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret, only a pause


def _once(operate: Callable[[str], Result], db: str) -> Result:
    try:
        return operate(db)
    except Error as error:
        connection = connections[db]
        lost = classify(error, connection) is ErrorKind.RECONNECT
        if lost and not connection.in_atomic_block:
            connection.close()
        raise


@contextmanager
def short_transaction(db: str) -> Iterator[BaseDatabaseWrapper]:
    """Run the block in a transaction with bounded waits; yield the connection.

    Inside a caller's transaction, to which the range is then bound, use a savepoint.
    """
    connection = connections[db]
    if connection.in_atomic_block or not has_autocommit(connection):
        with transaction.atomic(using=db):
            yield connection
        return
    with transaction.atomic(using=db):
        dialect_of(connection).begin(connection, schema_of(connection))
        yield connection


def _raise_final(
    kind: ErrorKind, error: Error, using: str, what: str, if_missing: str
) -> None:
    if kind is ErrorKind.LOCKED:
        raise ReservationTimeout(
            f"{what} on {using!r} stayed locked for too long: "
            f"{error}. HILO['LOCK_TIMEOUT'] is {settings.LOCK_TIMEOUT:g} s. Find the "
            f"transaction that holds the row: it may be the one that asks for this id."
        ) from error
    if kind is ErrorKind.NO_TABLE:
        raise TableMissing(if_missing) from error
    if kind in {ErrorKind.NO_COLUMN, ErrorKind.OTHER}:
        raise error
