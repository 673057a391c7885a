"""PostgreSQL: SQLSTATE codes, and settings that end with their transaction.

`counters.reservation` locks the rows of counters, and `locked` here those of gapless
ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from math import ceil
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from django_hilo._database.dialects.base import (
    POOLED,
    Dialect,
    ErrorKind,
    lower_option,
    rows_of,
)
from django_hilo.conf import settings

# Levels of HILO["SYNCHRONOUS_COMMIT"] that wait for a standby.
WITH_STANDBY = ("on", "remote_write", "remote_apply")

# A connection's status, to psycopg 3 and psycopg 2; it is false for an idle one.
_ACTIVE = 1

_KINDS = {
    "40001": ErrorKind.RETRY,  # serialization failure
    "40P01": ErrorKind.RETRY,  # deadlock
    "23505": ErrorKind.RETRY,  # another process made the first row
    "55P03": ErrorKind.LOCKED,  # lock_timeout
    "57014": ErrorKind.LOCKED,  # statement_timeout
    "42P01": ErrorKind.NO_TABLE,
    "42703": ErrorKind.NO_COLUMN,
    "25006": ErrorKind.RECONNECT,  # read-only: a standby, during a failover
    "53300": ErrorKind.RECONNECT,  # too many connections
    # Timeouts of idle sessions and transactions; shutdown, crash, starting up.
    **dict.fromkeys(("25P03", "25P04", "57P05"), ErrorKind.RECONNECT),
    **dict.fromkeys(("57P01", "57P02", "57P03"), ErrorKind.RECONNECT),
}
# At connecting, for good; PostgreSQL's client library gives no SQLSTATE for them.
_REFUSALS = ("does not exist", "authentication failed", "no pg_hba.conf entry")
# Of a server without free connections (at connecting it gives no SQLSTATE either), of
# PgBouncer (twice) and of psycopg's pool.
_FULL = (
    *("too many clients", "too many connections", "connection slots are reserved"),
    *("no more connections allowed", "query_wait_timeout"),
    "couldn't get a connection",
)


def _bounds(locks_row: bool) -> list[str]:
    """Return the settings that bound a wait.

    The first starts anew with each lock that a statement waits for, and each process
    that changes a row makes others wait for one more. COMMIT knows no
    statement_timeout, so it waits for a standby as before.
    """
    return ["lock_timeout", "statement_timeout"] if locks_row else ["lock_timeout"]


def _lowered(name: str) -> str:
    """Return the call that bounds a setting, which a lower limit is left to."""
    now = f"current_setting('{name}')"
    is_lower = f"{now}::interval BETWEEN '1us' AND %s"  # it shows 0 for none, or 2min
    return f"set_config('{name}', CASE WHEN {is_lower} THEN {now} ELSE %s END, true)"


def _longest_waits(bounds: list[str]) -> list[str]:
    return [f"{ceil(settings.LOCK_TIMEOUT * 1000)}ms"] * (2 * len(bounds))


class PostgreSQL(Dialect):
    """PostgreSQL, by psycopg 3 (``sqlstate``) or psycopg 2 (``pgcode``)."""

    name = "PostgreSQL"
    draws_keys_from_sequence = True

    def classify(self, error: Exception) -> ErrorKind:
        cause = error.__cause__ or error
        state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if state is None:
            # The client library's: "server closed the connection", or at connecting.
            lost = isinstance(error, OperationalError | InterfaceError)
            refused = any(reason in str(error) for reason in _REFUSALS)
            return ErrorKind.RECONNECT if lost and not refused else ErrorKind.OTHER
        if state.startswith("08"):
            return ErrorKind.RECONNECT
        return _KINDS.get(state, ErrorKind.OTHER)

    def is_full(self, error: Exception) -> bool:
        return any(reason in str(error) for reason in _FULL)

    def is_busy(self, connection: BaseDatabaseWrapper) -> bool:
        driver: Any = connection.connection
        if driver is None:
            return False
        # psycopg 3 locks its connection for all of COPY, executemany() and stream().
        is_psycopg_3 = hasattr(driver, "pgconn")
        if is_psycopg_3 and (driver.lock.locked() or driver.pgconn.pipeline_status):
            return True
        status = driver.info.transaction_status
        return bool(status == _ACTIVE or (status and connection.autocommit))

    def prepare_own(self, connection: BaseDatabaseWrapper, longest: int) -> None:
        from django.db.backends.postgresql.psycopg_any import IsolationLevel

        options = connection.settings_dict["OPTIONS"]
        options["isolation_level"] = IsolationLevel.READ_COMMITTED
        # A server that stands still accepts connections, and sends nothing.
        lower_option(options, "connect_timeout", longest)
        vars(connection)["hilo_is_new"] = True

    def begin(self, connection: BaseDatabaseWrapper, *, locks_row: bool) -> None:
        idle = ceil(settings.LOCK_TIMEOUT * 1000 / 2)
        variables = {"idle_in_transaction_session_timeout": str(idle)}
        schema = getattr(connection, "schema_name", None)
        if schema is not None:
            quoted = connection.ops.quote_name(schema)
            variables["search_path"] = f"{quoted}, public"
        synchronous = settings.SYNCHRONOUS_COMMIT
        if synchronous is not None:
            variables["synchronous_commit"] = synchronous
        others = ["set_config(%s, %s, true)"] * len(variables)
        bounds = _bounds(locks_row)
        calls = ", ".join([*map(_lowered, bounds), *others])
        values = [*_longest_waits(bounds), *chain(*variables.items())]
        is_new = vars(connection).pop("hilo_is_new", False)
        if is_new:
            # The server ends a session that a burst left open, unless it is a pooler's,
            # whose clients get process ids of its own making.
            calls += (
                ", CASE WHEN pg_backend_pid() = %s "
                "THEN set_config('idle_session_timeout', %s, false) END"
            )
            seconds = f"{ceil(settings.LOCK_TIMEOUT / 2)}s"
            values += [connection.connection.info.backend_pid, seconds]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {calls}", values)
            if is_new:
                vars(connection)[POOLED] = cursor.fetchone()[-1] is None

    @contextmanager
    def bounded_wait(
        self, connection: BaseDatabaseWrapper, *, locks_row: bool = True
    ) -> Iterator[None]:
        bounds = _bounds(locks_row)
        now = ", ".join(f"current_setting('{each}')" for each in bounds)
        query = f"SELECT {now}, {', '.join(map(_lowered, bounds))}"
        found = rows_of(connection, query, _longest_waits(bounds))
        yield
        # After an error the savepoint's rollback restores them.
        restore = ", ".join(f"set_config('{each}', %s, true)" for each in bounds)
        rows_of(connection, f"SELECT {restore}", found[0][: len(bounds)])

    def locked(self, connection: BaseDatabaseWrapper, row: Model) -> Any:
        rows = type(row)._default_manager.using(connection.alias)
        found = rows.select_for_update().filter(pk=row.pk).first()
        return found or super().locked(connection, row)

    def id_type(self, max_length: int) -> str | None:
        # The long name of varchar keeps Django from adding a second index for LIKE, to
        # this column and to each foreign key.
        return f"character varying({max_length})"
