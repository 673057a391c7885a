"""The counters of integer keys that name no source."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.own_connection import Result
from django_hilo._database.retry import (
    in_callers_transaction,
    retry,
    short_transaction,
)
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.own import ColumnCounter
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.counters.source import Fault, Source
from django_hilo.exceptions import SourceMismatch
from django_hilo.sources.formulas import Formula, Single
from django_hilo.sources.storages import Sequence
from django_hilo.sources.storages.base import State
from django_hilo.sources.storages.postgresql import PostgreSQL

logger = logging.getLogger("django_hilo")

_SINGLES = 1024


class _Found(Sequence):
    """The sequence of a key, in the state in which it was found."""

    def __init__(self, sequence: str, state: State) -> None:
        super().__init__(sequence)
        self.formula = Single(state.increment)
        self._state: State | None = state

    def _usable(self, connection: BaseDatabaseWrapper, formula: Formula) -> State:
        # The first draw need not ask again.
        state, self._state = self._state, None
        is_usable = state and not self._mismatch(state, connection, formula)
        return state if state and is_usable else super()._usable(connection, formula)


class KeySequence(Source):
    """The sequence of an integer key on PostgreSQL; one statement draws many numbers.

    The column's default draws from it too. The first draw of a process raises a
    sequence that is lower than the rows. ``is_historical`` is True for a model of a
    migration, whose table may not be committed yet: then numbers are drawn in the
    transaction of the migration.
    """

    rolls_back = False

    def __init__(self, column: KeyColumn, is_historical: bool) -> None:
        self.column = column
        self.is_historical = is_historical

    @property
    def name(self) -> str:
        return f"the sequence of {self.key[0]}"

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.column.table}.{self.column.column}", ""

    def in_callers_transaction(self, using: str) -> bool:
        return in_callers_transaction(using) or (
            self.is_historical and connections[using].in_atomic_block
        )

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        draw = partial(self._draw, wanted=wanted)
        return [
            Reservation(self.key[0], "", ids, server_prefix="", ticket="")
            for ids in self._run(draw, using, wanted.bound)
        ]

    def row_floor(self, using: str) -> int:
        connection = connections[using]
        if dialect_of(connection).is_busy(connection):
            highest = self._run(self._highest, using)
        else:
            # Rows that the caller has not committed count too.
            highest = self.column.highest(using)
        try:
            following = self.read_max(using) + 1
        except SourceMismatch as error:
            # A role that may draw but not look: it starts where the sequence stands.
            logger.debug("%s is used as it is: %s", self.name, error)
            return 0
        if highest < following:
            return 0
        if highest - following > settings.MAX_FLOOR_JUMP:
            logger.warning(
                "The row %d of %s on %r is far above its sequence (%d), which "
                "continues from there: as with BigAutoField, they may collide one day.",
                highest,
                self.column.table,
                using,
                following,
            )
            return 0
        return highest

    def _highest(self, db: str) -> int:
        with short_transaction(db):
            return self.column.highest(db)

    def _draw(self, db: str, *, wanted: Wanted) -> list[Range]:
        sequence = self._sequence(connections[db])
        size, at_least, formula = wanted.size, wanted.at_least, sequence.formula
        if formula.increment > 1:
            # A range a number, so that a large one would cost more than it spares.
            size = max(at_least, min(size, _SINGLES))
        return sequence.draw(db, formula, size, at_least, wanted.minimum)

    def read_max(self, using: str) -> int:
        return self._run(self._read, using)

    def _read(self, db: str) -> int:
        # An error in here must not end a transaction of the caller's.
        with short_transaction(db) as connection:
            sequence = self._sequence(connection)
            return sequence.formula.highest(sequence.read(db) or 0)

    def raise_floor(self, using: str, number: int) -> None:
        self._run(partial(self._raise, number=number), using)

    def _raise(self, db: str, *, number: int) -> None:
        sequence = self._sequence(connections[db])
        stored = sequence.formula.stored_over(number)
        sequence.raise_to(db, sequence.formula, stored)

    def faults(self, using: str) -> list[Fault]:
        connection = connections[using]
        table = connection.ops.quote_name(self.column.table)
        found = rows_of(
            connection,
            "SELECT attidentity FROM pg_catalog.pg_attribute "
            "JOIN pg_catalog.pg_class ON pg_class.oid = attrelid "
            "WHERE attrelid = to_regclass(%s) AND attname = %s "
            "AND relkind IN ('r', 'p')",
            [table, self.column.column],
        )
        if not found:
            return []  # it is yet to be migrated, or a view
        if found[0][0] in ("a", b"a"):
            return [
                Fault(
                    f"{self.key[0]} on {using!r} is GENERATED ALWAYS, so no row can be "
                    f"inserted with a given number.",
                    "ALTER TABLE ... ALTER COLUMN ... SET GENERATED BY DEFAULT.",
                    is_certain=False,
                )
            ]
        try:
            self._sequence(connection)
        except SourceMismatch as error:
            remedy = "Until then, no row can be saved without a key."
            return [Fault(str(error), remedy, is_certain=False)]
        return []

    def _sequence(self, connection: BaseDatabaseWrapper) -> "_Found":
        name, default, state = PostgreSQL().of_column(connection, *self.column)
        if name is not None and state is not None and state.increment > 0:
            return _Found(name, state)
        if default is not None:
            raise SourceMismatch(
                f"{self.key[0]} on {connection.alias!r} has the default {default}, "
                f"which draws from no ascending sequence. Change it, or name a "
                f"sequence in the field: source=database.Sequence(...)."
            )
        raise SourceMismatch(
            f"{self.key[0]} on {connection.alias!r} has no ascending sequence of its "
            f"own. Run: ALTER SEQUENCE ... OWNED BY {self.key[0]}; or name the "
            f"sequence in the field: source=database.Sequence(...)."
        )

    def _run(
        self, operate: Callable[[str], Result], using: str, bound: bool | None = None
    ) -> Result:
        return retry(
            operate,
            using,
            self.name,
            if_missing=f"There is no table {self.column.table!r} on {using!r}.",
            bound=self.in_callers_transaction(using) if bound is None else bound,
        )


def source_of(
    collection: str, column: KeyColumn, is_historical: bool, rows_on: str, home: str
) -> tuple[str, Source]:
    """Return the alias and the source for an integer key of rows on a database.

    ``home`` holds the counters of that database. SQLite's stay with the rows, as
    PostgreSQL's do: else they could not raise the column's default along.
    """
    dialect = dialect_of(connections[rows_on])
    if dialect.draws_keys_from_sequence:
        return rows_on, KeySequence(column, is_historical)
    alias = rows_on if dialect.raises_key_default else home
    return alias, ColumnCounter(collection, column, rows_on)
