"""A key's column, and the numbers that the database gives by itself to new rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import connections


class KeyColumn(NamedTuple):
    """The column of an integer key, by the names of its table and its own.

    `django_hilo.reservation` takes it for ranges of keys on SQLite.
    """

    table: str
    column: str

    @property
    def _name(self) -> str:
        # SQLite's own tables hold it as it was created, without quotes.
        return self.table.strip('"')

    def highest(self, using: str) -> int:
        """Return the highest key that a row has, or that the default has given."""
        connection = connections[using]
        table = connection.ops.quote_name(self.table)
        column = connection.ops.quote_name(self.column)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT MAX({column}) FROM {table}")  # noqa: S608 - quoted
            found = [cursor.fetchone()[0]]
            if connection.vendor == "mysql":
                # It counts rows that are not committed yet, and those deleted.
                cursor.execute(
                    "SELECT auto_increment - 1 FROM information_schema.tables "
                    "WHERE table_schema = database() AND table_name = %s",
                    [self.table],
                )
                found += [value for (value,) in cursor.fetchall()]
            elif connection.vendor == "sqlite" and _has_sequences(cursor):
                cursor.execute(
                    "SELECT seq FROM sqlite_sequence WHERE lower(name) = lower(%s)",
                    [self._name],
                )
                found += [value for (value,) in cursor.fetchall()]
        wrong = [value for value in found if isinstance(value, str)]
        if wrong:
            raise ValueError(
                f"{self.table}.{self.column} on {using!r} holds {wrong[0]!r}: no "
                f"integer keys."
            )
        return max((int(value) for value in found if value is not None), default=0)

    def claim(self, using: str, number: int) -> None:
        """Let the default of the column go on over a number (SQLite alone has it)."""
        with connections[using].cursor() as cursor:
            if not _has_sequences(cursor):
                return
            cursor.execute(
                "UPDATE sqlite_sequence SET seq = %s "
                "WHERE lower(name) = lower(%s) AND seq < %s",
                [number, self._name, number],
            )
            # A table without a row yet; one without AUTOINCREMENT never reads it.
            cursor.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s "
                "FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(%s) "
                "AND name NOT IN (SELECT name FROM sqlite_sequence)",
                [number, self._name],
            )

    def release(self, using: str, high: int, last: int) -> None:
        """Let the default go on over ``last``, where it stands at ``high`` still."""
        with connections[using].cursor() as cursor:
            if _has_sequences(cursor):
                cursor.execute(
                    "UPDATE sqlite_sequence SET seq = %s "
                    "WHERE lower(name) = lower(%s) AND seq = %s",
                    [last, self._name, high],
                )


def _has_sequences(cursor: Any) -> bool:
    """Whether a table with AUTOINCREMENT was ever made in this file."""
    cursor.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")
    return bool(cursor.fetchall())
