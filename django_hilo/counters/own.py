"""Our own counters, for text ids and for integer keys; `reservation` locks the rows."""

import logging

from django.db import Error, connections

from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo._database.which_connection import commits_alone
from django_hilo.counters import floor, reservation, returning
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.counters.source import Source
from django_hilo.exceptions import RangeNotReturned
from django_hilo.identifiers import counter_key

logger = logging.getLogger("django_hilo")


class OwnSource(Source):
    """A `HiLoDocument`: the counter of a collection and a node tag."""

    # The column whose own numbering rises along with each range, if any.
    shared_column: KeyColumn | None = None

    def __init__(self, collection: str, node_tag: str) -> None:
        self.collection = collection
        self.node_tag = node_tag

    @property
    def name(self) -> str:
        return f"HiLoDocument {counter_key(self.collection, self.node_tag)!r}"

    @property
    def key(self) -> tuple[str, str]:
        return self.collection.lower(), self.node_tag

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        """Reserve one range, which can be returned."""
        names, column = (self.collection, self.node_tag), self.shared_column
        return [reservation.reserve_range(*names, wanted, using, column)]

    def read_max(self, using: str) -> int:
        return floor.read_max(self.collection, using, node_tag=self.node_tag)

    def raise_floor(self, using: str, number: int) -> None:
        floor.raise_floor(self.collection, number, using, node_tag=self.node_tag)

    def give_back(self, using: str, reserved: Reservation, last: int) -> bool:
        try:
            returning.return_range(
                reserved.collection,
                reserved.range.high,
                last,
                reserved.ticket,
                node_tag=reserved.node_tag,
                column=self.shared_column,
                using=using,
            )
        except RangeNotReturned as error:
            logger.debug("%s", error)
            return False
        return True


class ColumnSource(OwnSource):
    """Our own counter for an integer key: over the rows, and without a node tag.

    On SQLite the column's default is raised along with each range, so rows that get
    their key from it do not collide. On other databases no row may use the default.
    """

    def __init__(self, collection: str, column: KeyColumn, rows_on: str) -> None:
        super().__init__(collection, "")
        self.column = column
        self.rows_on = rows_on
        if dialect_of(connections[rows_on]).raises_key_default:
            self.shared_column = column

    def row_floor(self, using: str) -> int:
        connection = connections[self.rows_on]
        try:
            return self.column.highest(self.rows_on)
        except Error as error:
            is_lost = classify(error, connection) is ErrorKind.RECONNECT
            if not is_lost or not commits_alone(connection):
                raise  # a transaction is lost, too
        connection.close()  # it was idle for too long, or killed
        return self.column.highest(self.rows_on)

    def minimum_of_rows(self, using: str) -> int:
        return self.row_floor(using) if self.shared_column is None else 0

    def raise_default(self, using: str) -> None:
        """Raise the default of the column over all reserved ranges."""
        number = self.read_max(using)
        if self.shared_column is not None and number:
            self.shared_column.raise_default(using, number)
