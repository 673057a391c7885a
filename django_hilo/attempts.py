"""Run what changes a counter in a short transaction, again as a whole if need be."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from math import ceil
from typing import TypeVar

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.conf import settings
from django_hilo.connections import counter_connection, is_bound, schema_of
from django_hilo.exceptions import ConcurrencyError, ReservationTimeout, TableMissing
from django_hilo.failures import Failure, classify
from django_hilo.standbys import LOCAL, bounded_commit

logger = logging.getLogger("django_hilo")

# Flat, because pauses that double starve a node of a busy cluster (measured on Galera).
_PAUSE = 0.003
_PAUSE_BEFORE_RECONNECTING = 0.25

Result = TypeVar("Result")


def attempt(
    operate: Callable[[str], Result],
    using: str,
    what: str,
    *,
    if_missing: str,
    retry_for: float | None = None,
) -> Result:
    """Call ``operate`` with the alias to work on, until it passes or time is over.

    Each call is to do all of its work anew, in a `short_transaction`. ``what`` names
    the counter in messages, ``if_missing`` says what to do where its table is missing.
    ``retry_for`` is in seconds (``None``: the setting).
    """
    bound = is_bound(connections[using])
    retry_for = settings.RETRY_FOR if retry_for is None else retry_for
    give_up_at = time.monotonic() + retry_for
    level = logging.WARNING
    while True:
        try:
            return _once(operate, using)
        except Error as error:
            failure = classify(error, connections[using].vendor)
            _raise_final(failure, error, using, what, if_missing)
            if bound or time.monotonic() > give_up_at:
                raise ConcurrencyError(
                    _gave_up(bound, using, retry_for, error)
                ) from error
            logger.log(level, "The counter on %r is tried again: %s", using, error)
            level = logging.DEBUG
        reconnects = failure is Failure.RECONNECT
        pause = _PAUSE_BEFORE_RECONNECTING if reconnects else _PAUSE
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret, only a pause


def _once(operate: Callable[[str], Result], using: str) -> Result:
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    with counter_connection(using, longest) as db:
        try:
            return operate(db)
        except Error as error:
            connection = connections[db]
            lost = classify(error, connection.vendor) is Failure.RECONNECT
            if lost and not connection.in_atomic_block:
                connection.close()
            raise


@contextmanager
def short_transaction(db: str) -> Iterator[BaseDatabaseWrapper]:
    """Run the block in a transaction with bounded waits; give the connection.

    In a caller's transaction, where a range has to be bound to it, in a savepoint.
    """
    connection = connections[db]
    if connection.in_atomic_block or is_bound(connection):
        with transaction.atomic(using=db):
            yield connection
        return
    with bounded_commit(connection) as before_commit, transaction.atomic(using=db):
        _prepare(connection)
        yield connection
        before_commit()


def _prepare(connection: BaseDatabaseWrapper) -> None:
    """Bound the wait for the lock and the time that a lost process may hold it.

    A process that was stopped, cut off, or killed while a child of a fork shared its
    socket leaves its transaction open: the server ends it while others still wait.
    """
    wait, idle = settings.LOCK_TIMEOUT, settings.LOCK_TIMEOUT / 2
    if connection.vendor == "postgresql":
        variables = {
            "lock_timeout": str(ceil(wait * 1000)),
            "idle_in_transaction_session_timeout": str(ceil(idle * 1000)),
        }
        schema = schema_of(connection)
        if schema is not None and connection.in_atomic_block:
            quoted = connection.ops.quote_name(schema)
            variables["search_path"] = f"{quoted}, public"
        if settings.SYNCHRONOUS_COMMIT is not None:
            variables["synchronous_commit"] = LOCAL  # until somebody insists
        calls = ", ".join(["set_config(%s, %s, true)"] * len(variables))
        _execute(connection, f"SELECT {calls}", chain(*variables.items()))
    elif connection.vendor == "mysql":
        # Whole seconds only, and on our own connection, so that no caller meets it.
        statement = f"SET SESSION innodb_lock_wait_timeout = {ceil(wait)}"
        # Connections of this kind have it; the base class does not.
        if connection.mysql_is_mariadb:  # type: ignore[attr-defined]
            statement += f", SESSION idle_transaction_timeout = {ceil(idle)}"
        _execute(connection, statement)


def _execute(
    connection: BaseDatabaseWrapper, statement: str, parameters: Iterable[str] = ()
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters))


def _raise_final(
    failure: Failure, error: Error, using: str, what: str, if_missing: str
) -> None:
    if failure is Failure.LOCKED:
        raise ReservationTimeout(
            f"{what} on {using!r} stayed locked for too long: "
            f"{error}. HILO['LOCK_TIMEOUT'] is {settings.LOCK_TIMEOUT:g} s. Find the "
            f"transaction that holds the row: it may be the one that asks for this id."
        ) from error
    if failure is Failure.NO_TABLE:
        raise TableMissing(if_missing) from error
    if failure in {Failure.NO_COLUMN, Failure.OTHER}:
        raise error


def _gave_up(bound: bool, using: str, retry_for: float, error: Error) -> str:
    if bound:
        return (
            f"No range could be reserved inside the transaction on {using!r}: {error}. "
            f"It is not tried again, since only you can repeat your transaction; on "
            f'SQLite, OPTIONS["transaction_mode"] = "IMMEDIATE" avoids most of these.'
        )
    return (
        f"The counter on {using!r} could not be changed for {retry_for:g} s "
        f"(HILO['RETRY_FOR']): {error}. No number was given twice; try again when the "
        f"database answers."
    )
