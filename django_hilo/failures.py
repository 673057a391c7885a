"""What a database error during a reservation means, for each driver.

Codes: PostgreSQL's SQLSTATE (psycopg 3 ``sqlstate``, psycopg 2 ``pgcode``), the first
argument of mysqlclient's and PyMySQL's errors, SQLite's result codes.
"""

from __future__ import annotations

import enum
import sqlite3

from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)


class Failure(enum.Enum):
    """What to do after a database error."""

    RETRY = "a new transaction may succeed"
    RECONNECT = "the connection is of no use, a new one may be"
    LOCKED = "the row stayed locked"
    NO_TABLE = "the tables of django_hilo are missing"
    NO_COLUMN = "a table is of an older version"
    OTHER = "nothing that a second try would mend"


_POSTGRESQL = {
    "40001": Failure.RETRY,  # serialization failure
    "40P01": Failure.RETRY,  # deadlock
    "23505": Failure.RETRY,  # another process made the first row
    "55P03": Failure.LOCKED,  # lock_timeout
    "57014": Failure.LOCKED,  # statement_timeout
    "42P01": Failure.NO_TABLE,
    "42703": Failure.NO_COLUMN,
    "25006": Failure.RECONNECT,  # read-only: a standby, during a failover
    "25P03": Failure.RECONNECT,  # idle_in_transaction_session_timeout
    "25P04": Failure.RECONNECT,  # transaction_timeout
    "57P05": Failure.RECONNECT,  # idle_session_timeout
    "53300": Failure.RECONNECT,  # too many connections
    "57P01": Failure.RECONNECT,  # shutdown
    "57P02": Failure.RECONNECT,
    "57P03": Failure.RECONNECT,  # starting up
}
# At connecting, for good; PostgreSQL's client library gives no SQLSTATE for them.
_POSTGRESQL_REFUSALS = (
    "does not exist",
    "authentication failed",
    "no pg_hba.conf entry",
)
_MYSQL = {
    1213: Failure.RETRY,  # deadlock; on Galera also at COMMIT
    1020: Failure.RETRY,  # record changed since the snapshot
    1062: Failure.RETRY,  # another process made the first row
    1205: Failure.LOCKED,  # innodb_lock_wait_timeout
    1317: Failure.LOCKED,  # KILL QUERY
    1969: Failure.LOCKED,  # max_statement_time
    1146: Failure.NO_TABLE,
    1054: Failure.NO_COLUMN,
    1040: Failure.RECONNECT,  # too many connections
    1047: Failure.RECONNECT,  # Galera node is not ready
    1053: Failure.RECONNECT,  # shutdown
    1180: Failure.RECONNECT,  # Galera node lost its quorum at COMMIT
    1290: Failure.RECONNECT,  # read-only: a replica, during a failover
    1927: Failure.RECONNECT,  # connection was killed
    2002: Failure.RECONNECT,
    2003: Failure.RECONNECT,
    2006: Failure.RECONNECT,
    2013: Failure.RECONNECT,
    2055: Failure.RECONNECT,
}
_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def classify(error: Exception, vendor: str) -> Failure:
    """Return what an error of ``vendor`` ("postgresql", "mysql", "sqlite") means."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return Failure.OTHER
    driver_error = error.__cause__ or error
    if vendor == "postgresql":
        return _classify_postgresql(error, driver_error)
    if vendor == "mysql":
        return _classify_mysql(error, driver_error)
    if vendor == "sqlite":
        return _classify_sqlite(driver_error)
    return Failure.RETRY if isinstance(error, OperationalError) else Failure.OTHER


def _classify_postgresql(error: Exception, driver_error: BaseException) -> Failure:
    state = getattr(driver_error, "sqlstate", None)
    state = state or getattr(driver_error, "pgcode", None)
    if state is None:
        # Errors of the client library, such as "server closed the connection", and
        # those at connecting carry no SQLSTATE.
        lost = isinstance(error, OperationalError | InterfaceError)
        refused = any(reason in str(error) for reason in _POSTGRESQL_REFUSALS)
        return Failure.RECONNECT if lost and not refused else Failure.OTHER
    if state.startswith("08"):
        return Failure.RECONNECT
    return _POSTGRESQL.get(state, Failure.OTHER)


def _classify_mysql(error: Exception, driver_error: BaseException) -> Failure:
    code = driver_error.args[0] if driver_error.args else None
    if isinstance(error, InterfaceError) and code in (0, ""):
        return Failure.RECONNECT  # the driver's connection is closed already
    if not isinstance(error, OperationalError | IntegrityError | ProgrammingError):
        return Failure.OTHER
    return _MYSQL.get(code, Failure.OTHER) if isinstance(code, int) else Failure.OTHER


def _classify_sqlite(driver_error: BaseException) -> Failure:
    code = getattr(driver_error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _SQLITE_BUSY:
        return Failure.RETRY
    if "no such table" in str(driver_error):
        return Failure.NO_TABLE
    if "no such column" in str(driver_error):
        return Failure.NO_COLUMN
    return Failure.OTHER
