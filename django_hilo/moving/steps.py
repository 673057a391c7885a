"""A move is a list of steps, which a plan prints and a migration runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django_hilo._allocation.counter import Counter
from django_hilo._database.dialects.base import rows_of
from django_hilo.identifiers import IdFormat
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Column, GenericColumn
from django_hilo.moving.values import Values


class Move(NamedTuple):
    """A move of a key, and of all that refers to it, on one database.

    ``columns`` starts with the key. In both directions their ``old`` fields are
    integers or UUIDs, and their ``new`` fields texts.
    """

    connection: Any
    columns: list[Column]
    generics: list[GenericColumn]
    counter: Counter
    id_format: IdFormat
    values: Values
    forwards: bool
    is_new: bool = False  # and its counter does not exist yet
    order_by: tuple[str, ...] = ()

    @property
    def key(self) -> Column:
        return self.columns[0]

    @property
    def sql(self) -> Sql:
        return Sql(self.connection)

    def rows(self, query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it gives any."""
        return rows_of(self.connection, query, parameters)

    def aim(self, column: Column) -> Any:
        """Return the field that a column has after the move."""
        return column.new if self.forwards else column.old

    def converted(self, text: str, *, generic: bool = False) -> str:
        """Return SQL of the new value of a text that was not converted yet."""
        if self.forwards:
            return self.values.forwards(text, generic)
        return self.values.backwards(text, generic)

    def is_pending(self, text: str, *, generic: bool = False) -> str:
        """Return the SQL condition that a text is not converted yet."""
        if self.forwards:
            return self.values.is_old(text, generic)
        return self.values.is_new(text, generic)


class Step(NamedTuple):
    """One step of a move: a title, the table, its lock there, and how it runs.

    ``sql`` contains the statements, or describes those of ``act``.
    """

    what: str
    table: str
    lock: str
    sql: tuple[str, ...]
    act: Callable[[Any], object] | None = None

    def run(self, editor: Any) -> None:
        if self.act is not None:
            self.act(editor)
            return
        for statement in self.sql:
            editor.execute(statement, None)


# A column of a table, and the move that changes it.
Part = tuple[Move, Column]


def by_table(moves: list[Move]) -> dict[str, list[Part]]:
    """Return the columns of each table, which is rewritten once for all moves."""
    found: dict[str, list[Part]] = {}
    for move in moves:
        for column in move.columns:
            found.setdefault(column.table, []).append((move, column))
    return found


def update(parts: list[Part]) -> str:
    """Return one UPDATE that converts the columns of a table that are texts now."""
    values, pending = [], []
    for move, column in parts:
        table, name = move.sql.name(column.table), move.sql.name(column.column)
        text = f"{table}.{name}"  # the table of UUIDs and ids has columns, too
        pending.append(move.is_pending(text))
        values.append(
            f"{name} = CASE WHEN {pending[-1]} THEN {move.converted(text)} "
            f"ELSE {text} END"
        )
    return f"UPDATE {table} SET {', '.join(values)} WHERE {' OR '.join(pending)}"


def generic_steps(move: Move, lock: str) -> list[Step]:
    """Return the steps for generic foreign keys and the admin's log."""
    found = []
    for column in move.generics:
        table, name = move.sql.name(column.table), move.sql.name(column.column)
        text = f"{table}.{name}"
        statement = (
            f"UPDATE {table} SET {name} = {move.converted(text, generic=True)} "
            f"WHERE {move.sql.name(column.type_column)} IN {column.types} "
            f"AND {move.is_pending(text, generic=True)}"
        )
        what = "Convert the generic foreign keys"
        found.append(Step(what, column.table, lock, (statement,)))
    return found
