"""The counter: over all numbers that rows have, or that the database has given."""

from __future__ import annotations

from typing import Any

from django.db.models.fields import AutoFieldMixin

from django_hilo.counters.key_column import KeyColumn
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Column
from django_hilo.moving.steps import Move, Step


def highest_number(connection: Any, key: Column) -> int:
    """Return the highest integer key, given to a row or by the column's default."""
    if connection.vendor == "mysql":
        return max(
            _highest_row(connection, key), _auto_increment(connection, key.table)
        )
    highest = KeyColumn(key.table, key.column).highest(connection.alias)
    if connection.vendor == "postgresql":
        highest = max(highest, _last_of_sequence(connection, key))
    return highest


def raise_counter(move: Move) -> Step:
    """Return the step that raises the counter over all keys."""
    target = move.shape.target
    known = highest_number(move.connection, move.key)

    def act(editor: Any) -> None:
        highest = highest_number(move.connection, move.key)
        if highest:
            target.source.raise_floor(target.using, highest)

    return Step(
        f"Raise the counter of {target.collection!r} on {target.using!r}",
        "",
        "",
        (f"{target.source.name}: at least {known}",),
        act,
    )


def has_default(move: Move) -> bool:
    """Whether the database numbered the rows."""
    return isinstance(move.key.old, AutoFieldMixin)


def next_default(move: Move) -> int:
    """Return what an integer key goes on with: over all ids, and over Max."""
    sql, key = move.sql, move.key
    column = sql.name(key.column)
    with move.connection.cursor() as cursor:
        cursor.execute(f"SELECT MAX({column}) FROM {sql.name(key.table)}")
        rows = int(cursor.fetchone()[0] or 0)
    target = move.shape.target
    given = target.source.read_max(target.using)
    _, most = move.connection.ops.integer_field_range(key.old.get_internal_type())
    return max(rows, given if most is None or given < most else 0) + 1


def _highest_row(connection: Any, key: Column) -> int:
    # Of what is no id yet: after a crash some may be.
    sql = Sql(connection)
    text = sql.text(sql.name(key.column))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT MAX(CAST({text} AS UNSIGNED)) FROM {sql.name(key.table)} "
            f"WHERE {sql.is_digits(text)}"
        )
        return int(cursor.fetchone()[0] or 0)


def _auto_increment(connection: Any, table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT auto_increment - 1 FROM information_schema.tables "
            "WHERE table_schema = database() AND table_name = %s",
            [table],
        )
        return max((int(value or 0) for (value,) in cursor.fetchall()), default=0)


def _last_of_sequence(connection: Any, key: Column) -> int:
    sql = Sql(connection)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_serial_sequence(%s, %s)",
            [sql.name(key.table), key.column],
        )
        (sequence,) = cursor.fetchone()
        if sequence is None:
            return 0
        cursor.execute(f"SELECT last_value, is_called FROM {sequence}")
        last, is_called = cursor.fetchone()
        return int(last) if is_called else 0
