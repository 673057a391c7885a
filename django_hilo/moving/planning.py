"""From two fields of a migration's states to the steps between them."""

from __future__ import annotations

from typing import Any

from django.db import models

from django_hilo._allocation.target import resolve
from django_hilo.exceptions import HiLoError
from django_hilo.moving import mapping, mariadb, postgresql, preflight, sqlite
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Generic, columns_of, generic_columns
from django_hilo.moving.shapes import shape_of
from django_hilo.moving.steps import Move, Step
from django_hilo.moving.strangers import check_all_are_known
from django_hilo.moving.values import Integers, Mapped, Values

_STEPS = {
    "postgresql": postgresql.steps,
    "mysql": mariadb.steps,
    "sqlite": sqlite.steps,
}


def move_of(
    old: Any, new: Any, generic: Generic, connection: Any, forwards: bool
) -> Move:
    """Return what is to be moved on a database; raises `HiLoError`."""
    if connection.vendor not in _STEPS:
        raise HiLoError(f"MoveToHiLo knows no {connection.display_name}.")
    if not (old.primary_key and new.primary_key):
        raise HiLoError(f"{new} is no primary key: MoveToHiLo moves these.")
    if old.column != new.column:
        raise HiLoError(
            f"{new} would change its column from {old.column!r} to {new.column!r}: "
            f"rename it in an AlterField of its own, before or after."
        )
    columns = columns_of(old, new, connection.alias)
    check_all_are_known(columns, connection)
    generics = generic_columns(columns, generic, connection)
    # A test database may be made before that of its counters.
    is_new = (
        forwards
        and resolve(new, connection.alias).using != connection.alias
        and preflight.is_new(columns, generics, connection)
    )
    if not is_new:
        preflight.check_tables(new, connection.alias)
    shape = shape_of(new, connection.alias, reads_prefix=not is_new)
    sql = Sql(connection)
    values: Values
    if isinstance(old, models.UUIDField):
        values = Mapped(sql, mapping.table_of(new, connection))
    elif isinstance(old, models.IntegerField):
        values = Integers(sql, shape.format)
    else:
        raise HiLoError(
            f"{old} is a {type(old).__name__}: MoveToHiLo moves integers and UUIDs."
        )
    return Move(connection, columns, generics, shape, values, forwards)


def steps(move: Move, order_by: tuple[str, ...]) -> list[Step]:
    """Return the steps of a move, after its checks; raises `HiLoError`."""
    if move.forwards:
        resumed = move.connection.vendor == "mysql" and mariadb.is_text(move)
        preflight.check_way_there(move, resumed)
    else:
        preflight.check_way_back(move)
    return _STEPS[move.connection.vendor](move, order_by)
