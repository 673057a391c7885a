"""SQLite: one writer at a time, and one file for the rows and their counter."""

import sqlite3
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import Dialect, ErrorKind, rows_of

_UPDATE = "UPDATE sqlite_sequence SET seq = %s WHERE lower(name) = lower(%s)"
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SQLite(Dialect):
    """SQLite, by Python's own driver."""

    name = "SQLite"
    has_one_writer = True
    raises_key_default = True
    prevents_conflicts = (
        ' OPTIONS["transaction_mode"] = "IMMEDIATE" usually prevents this.'
    )

    def classify(self, error: Exception) -> ErrorKind:
        cause = error.__cause__ or error
        code = getattr(cause, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_LOCKED_SHAREDCACHE:
            return ErrorKind.OTHER  # databases of tests in memory: at once, as Django
        if code is not None and code & 0xFF in _BUSY:
            return ErrorKind.RETRY
        if "no such table" in str(cause):
            return ErrorKind.NO_TABLE
        if "no such column" in str(cause):
            return ErrorKind.NO_COLUMN
        return ErrorKind.OTHER

    def is_busy(self, connection: BaseDatabaseWrapper) -> bool:
        begun: bool = getattr(connection.connection, "in_transaction", False)
        return begun and connection.autocommit

    def has_rolled_back(
        self, connection: BaseDatabaseWrapper, error: Exception
    ) -> bool:
        # As after a full disk.
        return connection.in_atomic_block and not connection.connection.in_transaction

    def last_default(self, connection: BaseDatabaseWrapper, table: str) -> list[Any]:
        if not _has_sequences(connection):
            return []
        found = "SELECT seq FROM sqlite_sequence WHERE lower(name) = lower(%s)"
        return [value for (value,) in rows_of(connection, found, [_name(table)])]

    def raise_default(
        self, connection: BaseDatabaseWrapper, table: str, number: int
    ) -> None:
        if not _has_sequences(connection):
            return
        rows_of(connection, f"{_UPDATE} AND seq < %s", [number, _name(table), number])
        # A table without a row yet; one without AUTOINCREMENT never reads it.
        rows_of(
            connection,
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s "
            "FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(%s) "
            "AND name NOT IN (SELECT name FROM sqlite_sequence)",
            [number, _name(table)],
        )

    def lower_default(
        self, connection: BaseDatabaseWrapper, table: str, high: int, last: int
    ) -> None:
        if _has_sequences(connection):
            rows_of(connection, f"{_UPDATE} AND seq = %s", [last, _name(table), high])


def _has_sequences(connection: BaseDatabaseWrapper) -> bool:
    """Whether a table with AUTOINCREMENT was ever made in this file."""
    found = "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"
    return bool(rows_of(connection, found))


def _name(table: str) -> str:
    # SQLite's own tables have the name as it was created, without quotes.
    return table.strip('"')
