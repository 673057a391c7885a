"""What the catalogs of the databases tell about tables and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.identifiers import MAX_NUMBER

# Highest values of the types that counters have; what is not here is wrong for one.
_LIMITS = {
    "smallint": 2**15 - 1,
    "mediumint": 2**23 - 1,
    "int": 2**31 - 1,
    "integer": 2**31 - 1,
    "bigint": MAX_NUMBER,
    "numeric": MAX_NUMBER,
    "decimal": MAX_NUMBER,
}


def quoted(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return a name for SQL; ``schema.name`` is quoted part by part."""
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', name)
    return ".".join(connection.ops.quote_name(part) for part in parts)


def rows_of(
    connection: BaseDatabaseWrapper, sql: str, parameters: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def columns_of(connection: BaseDatabaseWrapper, table: str) -> dict[str, str]:
    """Return the types of a table's columns by name; empty where there is no table."""
    if connection.vendor == "postgresql":
        found = rows_of(
            connection,
            "SELECT attname, format_type(atttypid, NULL) FROM pg_catalog.pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [quoted(connection, table)],
        )
    elif connection.vendor == "mysql":
        schema, name = _split(table)
        found = rows_of(
            connection,
            "SELECT column_name, column_type FROM information_schema.columns "
            "WHERE table_schema = coalesce(%s, database()) AND table_name = %s",
            [schema, name],
        )
    else:
        found = rows_of(
            connection, "SELECT name, type FROM pragma_table_info(%s)", [table]
        )
    return {str(name): str(kind).lower() for name, kind in found}


def limit_of(connection: BaseDatabaseWrapper, kind: str) -> int | None:
    """Return the highest value that a column's type takes, None for no integer type."""
    if connection.vendor == "sqlite":
        return MAX_NUMBER if "int" in kind else None
    word = re.match(r"[a-z]*", kind)
    limit = _LIMITS.get(word[0]) if word else None
    if limit is not None and "unsigned" in kind:
        limit = min(limit * 2 + 1, MAX_NUMBER)
    return limit


def has_unique_key(
    connection: BaseDatabaseWrapper, table: str, columns: set[str]
) -> bool:
    """Whether no two rows can have the same values in some of these columns."""
    if connection.vendor == "postgresql":
        found = rows_of(
            connection,
            "SELECT array_agg(attname::text) FROM pg_catalog.pg_index "
            "JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND attnum = "
            "ANY(indkey) WHERE indrelid = to_regclass(%s) AND indisunique "
            "AND indpred IS NULL AND indexprs IS NULL GROUP BY indexrelid",
            [quoted(connection, table)],
        )
        return any(set(names) <= columns for (names,) in found)
    if connection.vendor == "mysql":
        schema, name = _split(table)
        found = rows_of(
            connection,
            "SELECT group_concat(column_name) FROM information_schema.statistics "
            "WHERE table_schema = coalesce(%s, database()) AND table_name = %s "
            "AND NOT non_unique GROUP BY index_name",
            [schema, name],
        )
        return any(set(names.split(",")) <= columns for (names,) in found)
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
    return any(
        (constraint["unique"] or constraint["primary_key"])
        and set(constraint["columns"]) <= columns
        for constraint in constraints.values()
    )


def _split(table: str) -> tuple[str | None, str]:
    schema, _, name = table.rpartition(".")
    return schema or None, name
