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
    connections,
    transaction,
)

from django_hilo._database import dialects, own_connection
from django_hilo._database.dialects import classify, dialect_of
from django_hilo._database.dialects.base import Dialect, ErrorKind
from django_hilo._database.dialects.mariadb import MariaDB
from django_hilo._database.dialects.mysql import MySQL
from django_hilo._database.dialects.postgresql import PostgreSQL
from django_hilo._database.dialects.sqlite import SQLite
from django_hilo.counters import (
    Range,
    next_gapless_number,
    raise_floor,
    reserve,
    return_range,
    seed_gapless_number,
)
from tests.support.databases import CHOSEN


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
        (OperationalError, "40001", ErrorKind.RETRY),
        (OperationalError, "40P01", ErrorKind.RETRY),
        (IntegrityError, "23505", ErrorKind.RETRY),
        (OperationalError, "55P03", ErrorKind.LOCKED),
        (OperationalError, "57014", ErrorKind.LOCKED),
        (ProgrammingError, "42P01", ErrorKind.NO_TABLE),
        (OperationalError, "57P01", ErrorKind.RECONNECT),
        (OperationalError, "08006", ErrorKind.RECONNECT),
        (OperationalError, "53300", ErrorKind.RECONNECT),
        (OperationalError, None, ErrorKind.RECONNECT),
        (InterfaceError, None, ErrorKind.RECONNECT),
        (DataError, "22003", ErrorKind.OTHER),
        (ProgrammingError, None, ErrorKind.OTHER),
    ],
)
def test_postgresql(attribute, kind, code, expected):
    error = error_of(kind, **{attribute: code})
    assert PostgreSQL().classify(error) is expected


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (OperationalError, (1213, "Deadlock found"), ErrorKind.RETRY),
        (OperationalError, (1020, "Record has changed"), ErrorKind.RETRY),
        (IntegrityError, (1062, "Duplicate entry"), ErrorKind.RETRY),
        (OperationalError, (3101, "Plugin instructed"), ErrorKind.RETRY),
        (OperationalError, (3100, "observer hook"), ErrorKind.RECONNECT),
        (OperationalError, (1205, "Lock wait timeout"), ErrorKind.LOCKED),
        (OperationalError, (1969, "max_statement_time"), ErrorKind.LOCKED),
        (OperationalError, (1317, "interrupted"), ErrorKind.LOCKED),
        (OperationalError, (3024, "max_execution_time"), ErrorKind.LOCKED),
        (ProgrammingError, (1146, "Table doesn't exist"), ErrorKind.NO_TABLE),
        (OperationalError, (2006, "gone away"), ErrorKind.RECONNECT),
        (OperationalError, (2013, "Lost connection"), ErrorKind.RECONNECT),
        (OperationalError, (1047, "WSREP"), ErrorKind.RECONNECT),
        (OperationalError, (1180, "fragment"), ErrorKind.RETRY),
        (InterfaceError, (0, ""), ErrorKind.RECONNECT),
        (OperationalError, (1203, "max_user_connections"), ErrorKind.RECONNECT),
        (OperationalError, (1226, "max_user_connections"), ErrorKind.RECONNECT),
        (OperationalError, (1045, "Access denied"), ErrorKind.OTHER),
        (DataError, (1264, "Out of range"), ErrorKind.OTHER),
        (OperationalError, (), ErrorKind.OTHER),
    ],
)
def test_mysql(kind, arguments, expected):
    for dialect in MySQL(), MariaDB():
        assert dialect.classify(error_of(kind, *arguments)) is expected


@pytest.mark.parametrize(
    ("message", "code", "expected"),
    [
        ("database is locked", sqlite3.SQLITE_BUSY, ErrorKind.RETRY),
        ("database is locked", sqlite3.SQLITE_BUSY_SNAPSHOT, ErrorKind.RETRY),
        ("database table is locked", sqlite3.SQLITE_LOCKED, ErrorKind.RETRY),
        ("table is locked", sqlite3.SQLITE_LOCKED_SHAREDCACHE, ErrorKind.OTHER),
        ("no such table: x", sqlite3.SQLITE_ERROR, ErrorKind.NO_TABLE),
        ("disk I/O error", sqlite3.SQLITE_IOERR, ErrorKind.OTHER),
    ],
)
def test_sqlite(message, code, expected):
    error = error_of(OperationalError, message, sqlite_errorcode=code)
    assert SQLite().classify(error) is expected


@pytest.mark.parametrize(
    ("dialect", "cause", "expected"),
    [
        (PostgreSQL(), "FATAL: sorry, too many clients already", True),
        (PostgreSQL(), "FATAL: too many connections for role", True),
        (PostgreSQL(), "FATAL: remaining connection slots are reserved", True),
        (PostgreSQL(), "FATAL: no more connections allowed (max_client_conn)", True),
        (PostgreSQL(), "FATAL: query_wait_timeout", True),
        (PostgreSQL(), "couldn't get a connection after 30.00 sec", True),
        (PostgreSQL(), "connection to server failed: Connection refused", False),
        (PostgreSQL(), "cannot execute UPDATE in a read-only transaction", False),
        (MySQL(), (1040, "Too many connections"), True),
        (MariaDB(), (1203, "max_user_connections"), True),
        (MySQL(), (1226, "max_user_connections"), True),
        (MySQL(), (2002, "Can't connect to server"), False),
        (MariaDB(), (1290, "read-only"), False),
        (SQLite(), "database is locked", False),
        (Dialect(), "too many connections", False),
    ],
)
def test_errors_because_no_connection_is_free(dialect, cause, expected):
    arguments = cause if isinstance(cause, tuple) else (cause,)
    error = OperationalError(*arguments)
    error.__cause__ = DriverError(*arguments)
    assert dialect.is_full(error) is expected


def test_errors_of_other_databases_and_of_no_database():
    assert Dialect().classify(OperationalError()) is ErrorKind.RETRY
    assert Dialect().classify(DataError()) is ErrorKind.OTHER
    assert SQLite().classify(ValueError()) is ErrorKind.OTHER


@pytest.mark.django_db
def test_a_missing_table_of_this_database():
    with (
        pytest.raises(DatabaseError) as caught,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM no_such_table")
    assert classify(caught.value, connection) is ErrorKind.NO_TABLE


@pytest.mark.django_db
def test_the_dialect_of_a_connection():
    connection.ensure_connection()
    expected = {"sqlite": SQLite, "postgres": PostgreSQL, "mariadb": MariaDB}
    assert type(dialect_of(connection)) is expected.get(CHOSEN, MySQL)


def test_the_dialect_of_a_closed_connection_asks_no_server():
    assert dialect_of(connection.copy()).name in {"SQLite", "PostgreSQL", "MySQL"}


def test_a_database_without_a_dialect(monkeypatch):
    monkeypatch.setattr(type(connections["default"]), "vendor", "oracle")
    assert not dialect_of(connection).name


@pytest.fixture
def untested(monkeypatch):
    """Treat the database as one that nobody tested: plain ORM."""
    monkeypatch.setattr(dialects, "_BY_VENDOR", {})
    monkeypatch.setattr(dialects, "_MARIADB", Dialect())
    yield
    for own in own_connection.of_this_process().values():
        own.close()  # it was prepared for no database


@pytest.mark.django_db(transaction=True)
class TestPlainORM:
    def test_ranges(self, untested):
        first, second = reserve("orders", 10), reserve("orders", 5)
        assert (first.range, second.range) == (Range(1, 10), Range(11, 15))
        assert return_range("orders", 15, 12, second.ticket) == 12
        assert raise_floor("orders", 40) == 40
        assert reserve("orders", 5).range == Range(41, 45)

    def test_gapless_numbers(self, untested):
        assert [next_gapless_number("invoices") for _ in range(3)] == [1, 2, 3]
        assert seed_gapless_number("invoices", 10) == 10
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert next_gapless_number("invoices") == 11
            raise ZeroDivisionError
        assert next_gapless_number("invoices") == 11

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="it has one writer")
    def test_a_reservation_outlives_a_rollback(self, untested):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert reserve("orders", 10).range == Range(1, 10)
            raise ZeroDivisionError
        assert reserve("orders", 10).range == Range(11, 20)
