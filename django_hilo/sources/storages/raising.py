"""How a sequence of PostgreSQL is raised without keeping those who draw waiting."""

from __future__ import annotations

import random
import time

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.connection import in_callers_transaction
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.retry import short_transaction
from django_hilo._database.synchronous_commit import insist
from django_hilo.exceptions import CounterExhausted, SourceMismatch
from django_hilo.sources.storages.sequence_sql import PostgreSQL

# In one statement, and in all: a million takes about a second.
_DRAWN_AT_ONCE = 1_000_000
_DRAWN_AT_MOST = 20_000_000
# While the lock is waited for, all others wait behind it.
_LOCK_TIMEOUT = "100ms"
_TRIES = 5
_PAUSE = 0.1


def raise_to(db: str, sequence: str, value: int) -> None:
    """Let the next value be ``value`` or more; it never falls.

    By drawing, which no other process can mistake and for which USAGE is enough; over a
    long way by a restart under a lock, which the sequence's owner alone may take.
    """
    sql = PostgreSQL()
    steps = _steps(db, sql, sequence, value)
    if steps > _DRAWN_AT_ONCE:
        refusal = _restart(db, sql, sequence, value)
        if refusal is None:
            return
        if steps > _DRAWN_AT_MOST:
            if classify(refusal, connections[db]) is ErrorKind.LOCKED:
                raise refusal
            raise SourceMismatch(
                f"The sequence {sequence} on {db!r} cannot be raised to {value} by "
                f"this role, {steps} values away: {str(refusal).strip()}. Let its "
                f"owner run: ALTER SEQUENCE {sequence} RESTART WITH {value}"
            ) from refusal
    while steps > 0:
        with short_transaction(db) as connection:
            sql.skip(connection, sequence, min(steps, _DRAWN_AT_ONCE))
            insist(connection)
        steps = _steps(db, sql, sequence, value)


def _steps(db: str, sql: PostgreSQL, sequence: str, value: int) -> int:
    """Return how many values have to be drawn."""
    with short_transaction(db) as connection:
        state = sql.state(connection, sequence)
        if state is None:
            return 0
        following = state.next
        if following is None:
            following = sql.skip(connection, sequence, 1) + state.increment
    if following >= value:
        return 0
    if value > state.highest:
        raise CounterExhausted(
            f"The sequence {sequence} on {db!r} would become {value}; it ends at "
            f"{state.highest}. Widen it: ALTER SEQUENCE ... AS bigint, MAXVALUE."
        )
    return -(-(value - following) // state.increment)


def _restart(db: str, sql: PostgreSQL, sequence: str, value: int) -> Error | None:
    """Restart it; return the error where its lock or the right to it is missing."""
    connection = connections[db]
    callers = connection.in_atomic_block or in_callers_transaction(connection)
    refusal = None
    for _ in range(1 if callers else _TRIES):
        try:
            with short_transaction(db) as connection:
                if not callers:
                    _wait_little(connection)
                sql.restart(connection, sequence, value)
                insist(connection)
            return None
        except Error as error:
            refusal = error
        if sql.is_forbidden(refusal):
            break
        if classify(refusal, connections[db]) is not ErrorKind.LOCKED:
            raise refusal
        time.sleep(random.uniform(0, _PAUSE))  # noqa: S311 - no secret, only a pause
    return refusal


def _wait_little(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
