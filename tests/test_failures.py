from __future__ import annotations

import sqlite3

import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)

from django_hilo.failures import Failure, classify


class DriverError(Exception):
    """A driver's error, as psycopg 3 (sqlstate) or psycopg 2 (pgcode) has it."""


def error_of(
    kind: type[Exception], *arguments: object, **attributes: object
) -> Exception:
    error, cause = kind("message"), DriverError(*arguments)
    vars(cause).update(attributes)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("attribute", ["sqlstate", "pgcode"])
@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        (OperationalError, "40001", Failure.RETRY),
        (OperationalError, "40P01", Failure.RETRY),
        (IntegrityError, "23505", Failure.RETRY),
        (OperationalError, "55P03", Failure.LOCKED),
        (OperationalError, "57014", Failure.LOCKED),
        (ProgrammingError, "42P01", Failure.NO_TABLE),
        (OperationalError, "57P01", Failure.RECONNECT),
        (OperationalError, "08006", Failure.RECONNECT),
        (OperationalError, "53300", Failure.RECONNECT),
        (OperationalError, None, Failure.RECONNECT),
        (InterfaceError, None, Failure.RECONNECT),
        (DataError, "22003", Failure.OTHER),
        (ProgrammingError, None, Failure.OTHER),
    ],
)
def test_postgresql(attribute, kind, code, expected):
    assert classify(error_of(kind, **{attribute: code}), "postgresql") is expected


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (OperationalError, (1213, "Deadlock found"), Failure.RETRY),
        (OperationalError, (1020, "Record has changed"), Failure.RETRY),
        (IntegrityError, (1062, "Duplicate entry"), Failure.RETRY),
        (OperationalError, (1205, "Lock wait timeout"), Failure.LOCKED),
        (OperationalError, (1969, "max_statement_time"), Failure.LOCKED),
        (ProgrammingError, (1146, "Table doesn't exist"), Failure.NO_TABLE),
        (OperationalError, (2006, "gone away"), Failure.RECONNECT),
        (OperationalError, (2013, "Lost connection"), Failure.RECONNECT),
        (OperationalError, (1047, "WSREP"), Failure.RECONNECT),
        (OperationalError, (1180, "fragment"), Failure.RECONNECT),
        (InterfaceError, (0, ""), Failure.RECONNECT),
        (OperationalError, (1045, "Access denied"), Failure.OTHER),
        (DataError, (1264, "Out of range"), Failure.OTHER),
        (OperationalError, (), Failure.OTHER),
    ],
)
def test_mysql(kind, arguments, expected):
    assert classify(error_of(kind, *arguments), "mysql") is expected


@pytest.mark.parametrize(
    ("message", "code", "expected"),
    [
        ("database is locked", sqlite3.SQLITE_BUSY, Failure.RETRY),
        ("database is locked", sqlite3.SQLITE_BUSY_SNAPSHOT, Failure.RETRY),
        ("database table is locked", sqlite3.SQLITE_LOCKED, Failure.RETRY),
        ("no such table: x", sqlite3.SQLITE_ERROR, Failure.NO_TABLE),
        ("disk I/O error", sqlite3.SQLITE_IOERR, Failure.OTHER),
    ],
)
def test_sqlite(message, code, expected):
    error = error_of(OperationalError, message, sqlite_errorcode=code)
    assert classify(error, "sqlite") is expected


def test_errors_of_other_databases_and_of_no_database():
    assert classify(OperationalError(), "oracle") is Failure.RETRY
    assert classify(DataError(), "oracle") is Failure.OTHER
    assert classify(ValueError(), "sqlite") is Failure.OTHER


@pytest.mark.django_db
def test_a_missing_table_of_this_database():
    with (
        pytest.raises(DatabaseError) as caught,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM no_such_table")
    assert classify(caught.value, connection.vendor) is Failure.NO_TABLE
