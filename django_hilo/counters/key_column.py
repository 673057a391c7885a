"""The column of an integer key, and the database's own numbering of it."""

from collections.abc import Sequence
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
        return highest_keys([self], using)[0]

    def raise_default(self, using: str, number: int) -> None:
        """Raise the database's own numbering of the column to ``number``."""
        connection = connections[using]
        dialect_of(connection).raise_default(connection, self.table, number)

    def lower_default(self, using: str, high: int, last: int) -> None:
        """Lower the numbering to ``last`` if it is at ``high``."""
        connection = connections[using]
        dialect_of(connection).lower_default(connection, self.table, high, last)


def highest_keys(columns: Sequence[KeyColumn], using: str) -> list[int]:
    """Return the highest keys of the rows of these columns, by one statement."""
    connection = connections[using]
    name = connection.ops.quote_name
    each = [f"(SELECT MAX({name(of.column)}) FROM {name(of.table)})" for of in columns]  # noqa: S608 - quoted
    [highest] = rows_of(connection, f"SELECT {', '.join(each)}")
    for column, key in zip(columns, highest, strict=True):
        if isinstance(key, str):
            raise ValueError(
                f"{column.table}.{column.column} on {using!r} contains {key!r}, which "
                f"is not an integer."
            )
    return [int(key or 0) for key in highest]
