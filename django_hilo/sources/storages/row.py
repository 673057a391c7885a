"""Counters in one row of a table."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.db import DataError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.deconstruct import deconstructible

from django_hilo._database.dialects.base import rows_of
from django_hilo._database.own_connection import Result
from django_hilo._database.retry import short_transaction
from django_hilo.counters.ranges import Range
from django_hilo.counters.source import Fault
from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    SourceMismatch,
    UnsafeSource,
)
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources.formulas import Formula
from django_hilo.sources.storages import catalog
from django_hilo.sources.storages.base import Storage, near_limit

_ROUNDS = 100


@deconstructible(path="django_hilo.sources.storages.Row")
class Row(Storage):
    """A column of one row: read FOR UPDATE, and written if it has not changed.

    The lock is for partners that lock (Hibernate, Doctrine, Leaf), the comparison for
    partners that do not (Marten, Polecat, TinyID).

    - ``table``, ``column``: their names; the table's may include its schema.
    - ``key`` or ``where``: columns of the row, or SQL that selects it; without them the
      table must have one row.
    - ``start``: the number of a new row; None if a missing row is an error.
    - ``fixed``: columns that must have these values; a new row gets them.
    - ``also``: SQL that each update sets too, such as ``version = version + 1``.
    """

    def __init__(
        self,
        table: str,
        column: str,
        *,
        key: dict[str, Any] | None = None,
        where: str | None = None,
        start: int | None = None,
        fixed: dict[str, Any] | None = None,
        also: str | None = None,
    ) -> None:
        if key and where:
            raise ValueError("Identify the row by key= or where=, not both.")
        if start is not None and not key:
            raise ValueError("start= requires key=; otherwise no row could be created.")
        self.table = table
        self.column = column
        self.key = dict(sorted((key or {}).items()))
        self.where = where
        self.start = start
        self.fixed = dict(sorted((fixed or {}).items()))
        self.also = also

    @property
    def name(self) -> str:
        which = self.where or ", ".join(f"{k}={v!r}" for k, v in self.key.items())
        return f"{self.table}.{self.column}" + (f" where {which}" if which else "")

    def draw(
        self, db: str, formula: Formula, size: int, at_least: int, minimum: int
    ) -> list[Range]:
        lowest = formula.stored_over(minimum) if minimum else None

        def take(stored: int, size: int) -> tuple[Range, int]:
            start = stored if lowest is None else max(stored, lowest)
            return formula.take(start, size, at_least)

        try:
            return [self._change(db, lambda stored: take(stored, size))]
        except CounterExhausted:
            if size == at_least:
                raise
        # Fewer may fit under the end of the column's type.
        return [self._change(db, lambda stored: take(stored, at_least))]

    def raise_to(self, db: str, formula: Formula, stored: int) -> None:
        self._change(db, lambda old: (None, max(old, stored)))

    def read(self, db: str) -> int | None:
        rows = self._select(connections[db], "")
        return self._value(rows) if rows else self.start

    def _change(self, db: str, change: Callable[[int], tuple[Result, int]]) -> Result:
        """Lock the row, and write the number that ``change`` makes of the old one."""
        for _ in range(_ROUNDS):
            with short_transaction(db, locks_row=True) as connection:
                old = self._lock(connection)
                result, new = change(old)
                if new == old:
                    return result
                if self._write(connection, old, new):
                    return result
        raise ConcurrencyError(
            f"{self.name} on {db!r} was changed {_ROUNDS} times while its row was "
            f"locked: its engine does not lock rows. Use InnoDB."
        )

    def _lock(self, connection: BaseDatabaseWrapper) -> int:
        lock = _lock_of(connection)
        if not lock:
            # SQLite fails at once if a transaction reads first and then writes.
            column = catalog.quoted(connection, self.column)
            self._update(connection, f"SET {column} = {column}", [])
        rows = self._select(connection, lock)
        if not rows:
            self._insert(connection)
            rows = self._select(connection, lock)
        return self._value(rows)

    def _select(self, connection: BaseDatabaseWrapper, lock: str) -> list[Any]:
        columns = [self.column, *self.fixed]
        names = ", ".join(catalog.quoted(connection, column) for column in columns)
        table = catalog.quoted(connection, self.table)
        condition, parameters = self._condition(connection)
        return rows_of(
            connection, f"SELECT {names} FROM {table}{condition}{lock}", parameters
        )

    def _value(self, rows: list[Any]) -> int:
        if len(rows) != 1:
            raise SourceMismatch(
                f"{self.name} has {len(rows) or 'no'} rows, so the right one cannot be "
                f"determined. Make it one, with a unique key."
            )
        value, *fixed = rows[0]
        if value is None:
            raise SourceMismatch(
                f"{self.name} is NULL. Set it to the value that the partner's next "
                f"block needs."
            )
        for (column, wanted), found in zip(self.fixed.items(), fixed, strict=True):
            if found != wanted:
                raise UnsafeSource(
                    f"{self.table}.{column} is {found!r}, but must be {wanted!r}: with "
                    f"another value, its partners give ids twice. Stop them, then set "
                    f"it."
                )
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if not is_number or value != int(value):
            raise SourceMismatch(
                f"{self.name} is {value!r}, which is not an integer. Name the column "
                f"that counts, or make its type bigint."
            )
        return int(value)

    def _can_be_made(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether a row can be inserted, and no second one at the same time."""
        return self.start is not None and catalog.has_unique_key(
            connection, self.table, set(self.key)
        )

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        if self.start is None:
            raise SourceMismatch(
                f"{self.name} has no row. Let the partner create its schema, or insert "
                f"the row as the partner does."
            )
        if not self._can_be_made(connection):
            raise SourceMismatch(
                f"{self.name} has no row, and without a unique key two could be "
                f"created at once. Insert it with {self.start} before any process "
                f"starts."
            )
        row = {**self.key, **self.fixed, self.column: self.start}
        names = ", ".join(catalog.quoted(connection, column) for column in row)
        places = ", ".join(["%s"] * len(row))
        table = catalog.quoted(connection, self.table)
        with connection.cursor() as cursor:
            # A duplicate key is tried again: another process made the row.
            sql = f"INSERT INTO {table} ({names}) VALUES ({places})"
            cursor.execute(sql, list(row.values()))

    def _write(self, connection: BaseDatabaseWrapper, old: int, new: int) -> bool:
        also = f", {catalog.escaped(self.also)}" if self.also else ""
        column = catalog.quoted(connection, self.column)
        try:
            if new > MAX_NUMBER and connection.vendor != "postgresql":
                raise DataError(f"the limit is {MAX_NUMBER}")
            changed = self._update(connection, f"SET {column} = %s{also}", [new], old)
            if changed == 1 and connection.vendor != "postgresql":
                # Where it is not strict, MariaDB cuts a number that is too high. A
                # higher one than ours is another's, on an engine without locks.
                [(kept, *_)] = self._select(connection, _lock_of(connection))
                if kept < new:
                    raise DataError(f"the column stored {kept} instead")
        except DataError as error:
            raise CounterExhausted(
                f"{self.name} would become {new}: {str(error).strip()}. Widen it to "
                f"bigint, and the partner's type too."
            ) from error
        return changed == 1

    def _update(
        self,
        connection: BaseDatabaseWrapper,
        change: str,
        parameters: list[Any],
        old: int | None = None,
    ) -> int:
        condition, keys = self._condition(connection, old)
        table = catalog.quoted(connection, self.table)
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} {change}{condition}", [*parameters, *keys])
            return int(cursor.rowcount)

    def _condition(
        self, connection: BaseDatabaseWrapper, old: int | None = None
    ) -> tuple[str, list[Any]]:
        parts = [f"{catalog.quoted(connection, name)} = %s" for name in self.key]
        parameters = list(self.key.values())
        if self.where:
            parts.append(f"({catalog.escaped(self.where)})")
        if old is not None:
            parts.append(f"{catalog.quoted(connection, self.column)} = %s")
            parameters.append(old)
        return (" WHERE " + " AND ".join(parts) if parts else ""), parameters

    def faults(self, db: str, formula: Formula) -> list[Fault]:
        fault = self._fault(connections[db], formula)
        return [] if fault is None else [fault]

    def _fault(self, connection: BaseDatabaseWrapper, formula: Formula) -> Fault | None:
        kinds = catalog.columns_of(connection, self.table)
        if not kinds:
            return Fault(
                f"There is no table {self.table!r} on {connection.alias!r}.",
                "Let the partner create its schema, or create it in a migration.",
                is_certain=False,
            )
        names = (self.column, *self.key, *self.fixed)
        missing = [n for n in names if catalog.folded(connection, n) not in kinds]
        if missing:
            return Fault(
                f"The table {self.table!r} on {connection.alias!r} has no column "
                f"{', '.join(missing)}, but has {', '.join(kinds)}.",
                "Correct the names in the source; PostgreSQL folds them to lower case "
                "if the partner does not quote them.",
            )
        kind = kinds[catalog.folded(connection, self.column)]
        limit = catalog.limit_of(connection, kind)
        if limit is None:
            return Fault(
                f"{self.name} on {connection.alias!r} is {kind}, not an integer.",
                "Name the column that counts.",
            )
        rows = self._select(connection, "")
        if not rows:
            unsafe = Fault(
                f"{self.name} has no row, and it cannot be created safely here.",
                f"Insert it with {self.start or 0}, or the partner's initial value, "
                f"before any process starts.",
                is_certain=False,
            )
            return None if self._can_be_made(connection) else unsafe
        try:
            return near_limit(self.name, self._value(rows), limit, formula)
        except (SourceMismatch, UnsafeSource) as error:
            return Fault(str(error), "See docs/how-to/sources.md.")


def _lock_of(connection: BaseDatabaseWrapper) -> str:
    return " FOR UPDATE" if connection.features.has_select_for_update else ""
