"""Checks before anything is changed; each error says what to do."""

import re
from typing import Any

from django.db import connections
from django.db.models import CheckConstraint, UUIDField

from django_hilo._allocation.find import resolve
from django_hilo.counters.own import OwnSource
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import MAX_NUMBER, shown
from django_hilo.moving import mysql
from django_hilo.moving.numbering import highest_number, highest_reserved
from django_hilo.moving.relations import Column, GenericColumn, has_rows
from django_hilo.moving.steps import Move
from django_hilo.moving.values import Mapped

_SHOWN = 3


def check_tables(field: Any, using: str) -> None:
    """Raise `HiLoError` if the tables of the counters do not exist yet."""
    counter = resolve(field, using)
    if not isinstance(counter.source, OwnSource):
        return
    # Not above: a project may have removed the app, and kept its migrations.
    from django_hilo.models import HiLoDocument, ServerPrefix

    home = connections[counter.using]
    wanted = {HiLoDocument._meta.db_table, ServerPrefix._meta.db_table}
    if wanted - set(home.introspection.table_names()):
        raise HiLoError(
            f"The tables of django_hilo on {counter.using!r} are missing: add "
            f'("django_hilo", "0001_initial") to the dependencies of this migration, '
            f"and migrate that database first."
        )


def is_new(
    columns: list[Column], generics: list[GenericColumn], connection: Any
) -> bool:
    """Whether no row has, or had, a key: there is nothing to number then."""
    key = columns[0]
    if generics or any(has_rows(connection, each.table) for each in columns):
        return False
    return isinstance(key.old, UUIDField) or highest_number(connection, key) == 0


def check_forwards(move: Move, is_resumed: bool) -> None:
    """Raise `HiLoError` for keys that make no ids, and for columns without room."""
    _check_computed(move)
    if isinstance(move.values, Mapped):
        rows = move.key.new.model._base_manager
        count = int(rows.using(move.connection.alias).count())
        highest = highest_reserved(move.counter) + count if count else 0
        if not is_resumed:
            _check_no_strays(move)
    else:
        highest = highest_number(move.connection, move.key)
        name, table = move.sql.name(move.key.column), move.sql.name(move.key.table)
        few = f"SELECT {name} FROM {table} WHERE {name} < 1"
        if not is_resumed and (odd := _examples(move, few)):
            raise HiLoError(
                f"{move.key} has {odd}, but the number of an id is at least 1. Give "
                f"these rows other keys first."
            )
    example = move.id_format.text(max(highest, 1))
    longest, most = len(example), move.key.new.max_length
    if most is not None and longest > most:
        raise HiLoError(
            f"The id {example!r} has {longest} characters, but {move.key} allows "
            f"{most}. Give the field a higher max_length."
        )
    for column in move.generics:
        if column.max_length is not None and column.max_length < longest:
            room = column.max_length
            takes = f"{room} characters" if room else "no text"
            raise HiLoError(
                f"{column} refers to objects of "
                f"{move.key.new.model._meta.label}, but allows {takes}. Change it to "
                f"CharField(max_length={most}) in a migration before this one."
            )


def check_backwards(move: Move) -> None:
    """Raise `HiLoError` if two ids have one number, or a text has none."""
    _check_computed(move)
    if isinstance(move.values, Mapped):
        _check_no_strays(move)
        return
    sql, key = move.sql, move.key
    column, table = sql.name(key.column), sql.name(key.table)
    number, is_digits = sql.number_or_null(column), sql.is_digits(column)
    kind = "UNSIGNED" if move.connection.vendor == "mysql" else "bigint"
    # After a crash on MariaDB some may be numbers already.
    number = f"CASE WHEN {is_digits} THEN CAST({column} AS {kind}) ELSE {number} END"
    _, most = move.connection.ops.integer_field_range(key.old.get_internal_type())
    most = most or MAX_NUMBER
    wrong = move.rows(
        f"SELECT MIN(id), MAX(id), number FROM "
        f"(SELECT {column} AS id, {number} AS number FROM {table}) numbered "
        f"GROUP BY number HAVING COUNT(*) > 1 OR number IS NULL OR number > {most} "
        f"ORDER BY number LIMIT 1"
    )
    if not wrong:
        _check_no_confusion(move, number)
        return
    least, greatest, its_number = wrong[0]
    if its_number is None:
        raise HiLoError(
            f"{key} cannot go back to numbers: {shown(least)} has none. Give such rows "
            f"ids with numbers, or delete them."
        )
    if least != greatest:
        raise HiLoError(
            f"{key} cannot go back to numbers: {shown(least)} and {shown(greatest)} "
            f"have the same one. Give one of them another id."
        )
    raise HiLoError(
        f"{key} cannot go back to {type(key.old).__name__}: the number of "
        f"{shown(least)} is above {most}."
    )


def _check_computed(move: Move) -> None:
    """Refuse constraints, indexes and columns computed from a key.

    SQLite would silently compute with the other kind of key.
    """
    editor = move.connection.schema_editor()
    has_partial = move.connection.features.supports_partial_indexes
    moved = "|".join({re.escape(move.sql.name(each.column)) for each in move.columns})
    # What is true of numbers and of ids: that a key is set, or is the same as another.
    harmless = rf"({moved}) (IS (NOT )?NULL|= \(({moved})\))"
    for column in move.columns:
        now = column.old if move.forwards else column.new
        options, name = now.model._meta, move.sql.name(column.column)
        computed = {
            each.name: each.generated_sql(move.connection)[0]
            for each in options.local_fields
            if each.generated
        }
        for each in (*options.constraints, *options.indexes):
            condition = getattr(each, "condition", None)
            if condition and (has_partial or isinstance(each, CheckConstraint)):
                check = CheckConstraint(condition=condition, name="condition")
                sql = check.constraint_sql(options.model, editor)
                computed[each.name] = re.sub(harmless, "", sql)
        for what, sql in computed.items():
            # Without texts: the path to a key in JSON may have the same name.
            if name in re.sub("'(''|[^'])*'", "", sql):
                raise HiLoError(
                    f"{what!r} of {options.label} computes with {column}: drop it in a "
                    f"migration before this one, and add it again after it."
                )


def _check_no_confusion(move: Move, number: str) -> None:
    """Refuse texts of no row whose number is that of a row, or that have none.

    Generic foreign keys may have none: those texts are not converted.
    """
    sql = move.sql
    # DISTINCT: MariaDB would otherwise compute the numbers again for each reference.
    rows = f"SELECT DISTINCT {number} AS number FROM {sql.name(move.key.table)}"
    if move.connection.vendor == "mysql":
        # After a crash: keys that are digits now were checked before it.
        rows += f" WHERE NOT ({sql.is_digits(sql.name(move.key.column))})"
    columns: list[Column | GenericColumn] = [*_without_constraint(move), *move.generics]
    for column in columns:
        text = f"referring.{sql.name(column.column)}"
        theirs = sql.number_or_null(text)
        wrong = f"{theirs} IN (SELECT number FROM ({rows}) {sql.name('numbered')})"
        if isinstance(column, GenericColumn):
            wrong += f" AND referring.{sql.name(column.type_column)} IN {column.types}"
        else:
            wrong = f"({theirs} IS NULL OR {wrong})"
        odd = _strays(move, column, text, f"NOT ({sql.is_digits(text)}) AND {wrong}")
        if odd:
            raise HiLoError(
                f"{column} cannot go back to numbers: {odd} is not the id of a row, "
                f"and could become that of another row. Change or delete such rows of "
                f"{column.table!r} first."
            )


def _check_no_strays(move: Move) -> None:
    """Refuse references to no row: the table of UUIDs and ids has none for them."""
    for column in _without_constraint(move):
        name = f"referring.{move.sql.name(column.column)}"
        odd = _strays(move, column, move.sql.text(name), f"{name} IS NOT NULL")
        if odd:
            raise HiLoError(
                f"{column} refers to {odd}, which is not a row of "
                f"{move.key.new.model._meta.label}. Correct these references first."
            )


def _without_constraint(move: Move) -> list[Column]:
    return [each for each in move.columns[1:] if not each.new.db_constraint]


def _strays(
    move: Move, column: Column | GenericColumn, shown: str, condition: str
) -> str:
    """Return examples of references to no row that meet a condition."""
    sql = move.sql
    key = f"t.{sql.name(move.key.column)}"
    reference = f"referring.{sql.name(column.column)}"
    if isinstance(column, GenericColumn) and move.connection.vendor == "mysql":
        reference = mysql.collated_as_key(move, reference)
    return _examples(
        move,
        f"SELECT {shown} FROM {sql.name(column.table)} referring WHERE {condition} "
        f"AND NOT EXISTS (SELECT 1 FROM {sql.name(move.key.table)} t "
        f"WHERE {key} = {reference})",
    )


def _examples(move: Move, query: str) -> str:
    """Return the first values that a query finds, as messages show them."""
    found = move.rows(f"{query} LIMIT {_SHOWN}")
    return ", ".join(" and ".join(map(shown, row)) for row in found)
