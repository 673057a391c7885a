"""The columns that grow beside the old ones, and what stands over these."""

from __future__ import annotations

from typing import Any, NamedTuple

from django_hilo.exceptions import HiLoError
from django_hilo.moving.steps import Move
from django_hilo.moving.values import Integers

_LONGEST = 63


class Shadow(NamedTuple):
    """A column, the one beside it, and how its values come from the old one's."""

    table: str  # quoted
    column: str
    type: str
    is_not_null: bool
    attribute: int
    comment: str | None
    # As for generic keys, which are texts before and after.
    keeps_type: bool
    # SQL of the new value; "{}" stands for the row, with its dot.
    value: str

    @property
    def new(self) -> str:
        return f"hilo_new_{self.column}"[:_LONGEST]

    @property
    def old(self) -> str:
        return f"hilo_old_{self.column}"[:_LONGEST]

    @property
    def same(self) -> str:
        """The constraint that says that old and new are the same."""
        return f"hilo_same_{self.attribute}"

    @property
    def filled(self) -> str:
        """The constraint that stands for NOT NULL."""
        return f"hilo_filled_{self.attribute}"

    def value_in(self, row: str) -> str:
        """Return SQL of the new value in a row, such as ``NEW.``."""
        return self.value.replace("{}", row)


def shadows_of(move: Move, *, is_swap_ahead: bool = True) -> list[Shadow]:
    """Return the columns to be; raises `HiLoError` for what must not be in the way."""
    if move.connection.vendor != "postgresql" or not isinstance(move.values, Integers):
        raise HiLoError(
            "The move without long locks is for integer keys on PostgreSQL. Run the "
            "migration itself, while no program writes."
        )
    sql, found = move.sql, []
    for column in move.columns:
        parameters = column.new.db_parameters(move.connection)
        collation = parameters.get("collation")
        kind = parameters["type"] + (
            f" COLLATE {sql.name(collation)}" if collation else ""
        )
        text = sql.text("{}" + sql.name(column.column))
        value = sql.compose(text, move.shape.format)
        found.append(_shadow(move, column.table, column.column, kind, value))
    for generic in move.generics:
        text = "{}" + sql.name(generic.column)
        types = ", ".join(map(str, generic.type_ids))
        value = (
            f"CASE WHEN {{}}{sql.name(generic.type_column)} IN ({types}) AND "
            f"{sql.is_digits(text)} THEN {sql.compose(text, move.shape.format)} "
            f"ELSE {text} END"
        )
        found.append(_shadow(move, generic.table, generic.column, "", value))
    if is_swap_ahead:
        _check_views(move, found)
    return found


def _shadow(move: Move, table: str, column: str, kind: str, value: str) -> Shadow:
    sql = move.sql
    (row,) = rows_of(
        move,
        "SELECT attnotnull, attnum, col_description(attrelid, attnum), "
        "format_type(atttypid, atttypmod) || CASE WHEN attcollation <> typcollation "
        "THEN ' COLLATE ' || attcollation::regcollation::text ELSE '' END "
        "FROM pg_attribute JOIN pg_type t ON t.oid = atttypid "
        "WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped",
        [sql.name(table), column],
    )
    is_not_null, attribute, comment, type = row
    return Shadow(
        sql.name(table),
        column,
        kind or type,
        is_not_null,
        attribute,
        comment,
        not kind,
        value,
    )


def _check_views(move: Move, shadows: list[Shadow]) -> None:
    for shadow in shadows:
        rows = rows_of(
            move,
            "SELECT DISTINCT r.ev_class::regclass::text FROM pg_depend d "
            "JOIN pg_rewrite r ON r.oid = d.objid "
            "WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = to_regclass(%s) "
            "AND d.refobjsubid = %s",
            [shadow.table, shadow.attribute],
        )
        rows += rows_of(
            move,
            "SELECT 'the constraint ' || conname FROM pg_constraint "
            "WHERE contype = 'c' AND conrelid = to_regclass(%s) AND %s = ANY (conkey) "
            "AND conname NOT LIKE 'hilo\\_%%'",
            [shadow.table, shadow.attribute],
        )
        rows += rows_of(move, _READERS, [shadow.table, shadow.attribute])
        if rows:
            raise HiLoError(
                f"{rows[0][0]} reads {shadow.table}.{shadow.column}, and would stay "
                f"with the old column. Drop it, and make it again after the swap."
            )


# Policies, triggers of some columns, and generated columns, which "clean" would drop.
_READERS = """
    SELECT DISTINCT 'the ' || pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM pg_depend d
    LEFT JOIN pg_trigger t
      ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND NOT t.tgisinternal
    LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    LEFT JOIN pg_attribute a
      ON a.attgenerated <> '' AND a.attrelid = d.refobjid
      AND (a.attnum = f.adnum OR d.classid = 'pg_class'::regclass
        AND d.objid = d.refobjid AND d.objsubid = a.attnum)
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = to_regclass(%s)
      AND d.refobjsubid = %s AND (d.classid = 'pg_policy'::regclass
        OR t.oid IS NOT NULL OR a.attnum IS NOT NULL)
"""


def rows_of(move: Move, query: str, parameters: list[Any]) -> list[Any]:
    with move.connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall())
