"""The counters of integer keys that name no source."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.own_connection import Result
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.uncounted import uncounted
from django_hilo._database.which_connection import commits_alone
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.own import ColumnSource
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.counters.source import Fault, Source
from django_hilo.exceptions import ReservationTimeout, SourceMismatch
from django_hilo.sources.foreign import StoredCounter
from django_hilo.sources.formulas import Formula, PooledLo
from django_hilo.sources.storages.base import State
from django_hilo.sources.storages.postgresql import PostgreSQL
from django_hilo.sources.storages.sequence import Sequence

logger = logging.getLogger("django_hilo")

# The OID of the sequence that a column draws from, or NULL. Any program may have set
# another default than nextval() of the sequence that the column owns. An identity has
# no row in pg_attrdef.
_SEQUENCE_OF_COLUMN = r"""(
    SELECT CASE
        WHEN pg_attrdef.oid IS NULL
        THEN pg_get_serial_sequence(%s, attname)::regclass::oid
        WHEN pg_get_expr(adbin, adrelid) ~ '^nextval\(''([^'']|'''')+''::regclass\)$'
        THEN (
            SELECT refobjid FROM pg_catalog.pg_depend
            WHERE classid = 'pg_attrdef'::regclass AND objid = pg_attrdef.oid
            AND refclassid = 'pg_class'::regclass AND deptype = 'n'
        )
    END
    FROM pg_catalog.pg_attribute
    LEFT JOIN pg_catalog.pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = %s::regclass AND attname = %s
)"""

# Each value is a number, whatever the increment: two sites can share a table by odd and
# even numbers.
_EACH_VALUE = PooledLo(1)


class SequenceOfColumn(Sequence):
    """The sequence of a column's default, or the column's own if it has no default.

    Each statement looks for it, since any program may change the default.
    """

    def __init__(self, column: KeyColumn) -> None:
        super().__init__(f"{column.table}.{column.column}")
        self.column = column

    @property
    def name(self) -> str:
        return f"the sequence of {self.sequence}"

    def _sql(self, connection: BaseDatabaseWrapper) -> PostgreSQL:
        table = connection.ops.quote_name(self.column.table)
        parameters = [table, table, self.column.column]
        return PostgreSQL(_SEQUENCE_OF_COLUMN, parameters)

    def _mismatch(
        self, state: State | None, connection: BaseDatabaseWrapper, formula: Formula
    ) -> Fault | None:
        if state is None or state.increment < 1:
            return Fault(
                f"The default of {self.sequence} on {connection.alias!r} is not "
                f"nextval() of one ascending sequence.",
                "Run: ALTER TABLE ... ALTER COLUMN ... SET DEFAULT nextval('...'); or "
                "name the sequence in the field: source=database.Sequence(...).",
            )
        of_any_increment = state._replace(increment=formula.increment)
        return super()._mismatch(of_any_increment, connection, formula)

    def read(self, db: str) -> int | None:
        self.usable(connections[db], _EACH_VALUE)
        return super().read(db)


class KeySequence(StoredCounter):
    """The sequence of an integer key on PostgreSQL; one statement draws many numbers.

    The column's default draws from it too. The first draw of a process raises a
    sequence that is lower than the rows. ``is_historical`` is True for a model of a
    migration, whose table may not be committed yet: then numbers are drawn in the
    transaction of the migration.
    """

    storage: SequenceOfColumn
    rolls_back = False

    def __init__(self, column: KeyColumn, is_historical: bool) -> None:
        super().__init__(SequenceOfColumn(column), _EACH_VALUE)
        self.column = column
        self.is_historical = is_historical

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.column.table}.{self.column.column}", ""

    def in_callers_transaction(self, using: str) -> bool:
        # Nor does a TestCase roll a sequence back.
        return self.is_historical and connections[using].in_atomic_block

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        return super().reserve(using, wanted._replace(collection=self.key[0]))

    def row_floor(self, using: str) -> int:
        connection = connections[using]
        # Rows that the caller has not committed count too.
        is_here = not (
            commits_alone(connection) or dialect_of(connection).is_busy(connection)
        )
        highest = self._attempt(self._highest, using, is_here or None)
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
                "continues from there: they may eventually collide, as with "
                "BigAutoField.",
                highest,
                self.column.table,
                using,
                following,
            )
            return 0
        return highest

    def _highest(self, db: str) -> int:
        # Another transaction may have locked the table.
        wait = partial(dialect_of(connections[db]).bounded_wait, locks_row=False)
        with short_transaction(db) as connection, wait(connection):
            return self.column.highest(db)

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
            self.storage.usable(connection, _EACH_VALUE)
        except SourceMismatch as error:
            remedy = "Until then, no row can be saved without a key."
            return [Fault(str(error), remedy, is_certain=False)]
        return []

    def _attempt(
        self, operate: Callable[..., Result], using: str, bound: bool | None = None
    ) -> Result:
        try:
            with uncounted(connections[using]):
                return retry(
                    operate,
                    using,
                    self.name,
                    if_missing=f"There is no table {self.column.table!r} on {using!r}.",
                    bound=bound or self.in_callers_transaction(using) or None,
                )
        except ReservationTimeout as error:
            raise ReservationTimeout(
                f"{error} TRUNCATE ... RESTART IDENTITY and ALTER lock a table or its "
                f"sequence until the commit: take the keys before, or commit first. So "
                f"does a key from the column's default, if the sequence is far below "
                f"the rows."
            ) from error


def source_of(
    collection: str,
    column: KeyColumn,
    is_historical: bool,
    rows_on: str,
    home_of: Callable[[str], str],
) -> tuple[str, Source]:
    """Return the alias and the source for an integer key of rows on a database.

    ``home_of`` finds the alias that has the counters of a database. SQLite's stay with
    the rows, as PostgreSQL's do: else they could not raise the column's default along.
    """
    dialect = dialect_of(connections[rows_on])
    if dialect.draws_keys_from_sequence:
        return rows_on, KeySequence(column, is_historical)
    alias = rows_on if dialect.raises_key_default else home_of(rows_on)
    return alias, ColumnSource(collection, column, rows_on)
