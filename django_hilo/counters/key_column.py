"""The column of an integer key, and the database's own numbering of it."""

from typing import NamedTuple

from django.db import connections

from django_hilo._database.dialects import dialect_of
from django_hilo._database.dialects.base import rows_of


class KeyColumn(NamedTuple):
    """The column of an integer key, by the names of its table and its own."""

    table: str
    column: str

    def highest(self, using: str) -> int:
        """Return the highest key of a row, or the last that the database gave."""
        connection = connections[using]
        given = dialect_of(connection).last_default(connection, self.table)
        return max([self.of_rows(using), *map(int, filter(None, given))])

    def of_rows(self, using: str) -> int:
        """Return the highest key of a row."""
        connection = connections[using]
        table = connection.ops.quote_name(self.table)
        column = connection.ops.quote_name(self.column)
        [(highest,)] = rows_of(connection, f"SELECT MAX({column}) FROM {table}")  # noqa: S608 - quoted
        if isinstance(highest, str):
            raise ValueError(
                f"{self.table}.{self.column} on {using!r} contains {highest!r}, which "
                f"is not an integer."
            )
        return int(highest or 0)

    def raise_default(self, using: str, number: int) -> None:
        """Raise the database's own numbering of the column to ``number``."""
        connection = connections[using]
        dialect_of(connection).raise_default(connection, self.table, number)

    def lower_default(self, using: str, high: int, last: int) -> None:
        """Lower the numbering to ``last`` if it is at ``high``."""
        connection = connections[using]
        dialect_of(connection).lower_default(connection, self.table, high, last)
