"""Names of tables and columns, and the catalogs of the databases about them."""

import re
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import rows_of
from django_hilo.identifiers import MAX_NUMBER

# Highest values of the types that counters have; what is not here is wrong for one.
_LIMITS = {
    "tinyint": 2**7 - 1,
    "smallint": 2**15 - 1,
    "mediumint": 2**23 - 1,
    "int": 2**31 - 1,
    "integer": 2**31 - 1,
    "bigint": MAX_NUMBER,
    "numeric": MAX_NUMBER,
    "decimal": MAX_NUMBER,
}


def split_name(name: str) -> list[str]:
    """Return the parts of ``schema.name``; a part in double quotes may hold a dot."""
    parts = re.findall(r'"((?:[^"]|"")+)"|([^."]+)', name)
    return [inside.replace('""', '"') or plain for inside, plain in parts]


def named(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return a name quoted part by part, to be passed as a parameter."""
    mark = "`" if connection.vendor == "mysql" else '"'
    parts = (part.replace(mark, mark * 2) for part in split_name(name))
    return ".".join(f"{mark}{part}{mark}" for part in parts)


def quoted(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return a name for SQL that takes parameters, if only an empty list of them."""
    return escaped(named(connection, name))


def escaped(sql: str) -> str:
    """Return SQL whose percent signs are not taken for parameters."""
    return sql.replace("%", "%%")


def folded(connection: BaseDatabaseWrapper, column: str) -> str:
    """Return a column's name as `columns_of` has it, PostgreSQL's alone with case."""
    name = split_name(column)[-1]
    return name if connection.vendor == "postgresql" else name.casefold()


_COLUMNS = {
    "postgresql": "SELECT attname, CASE typtype WHEN 'd' THEN "
    "format_type(typbasetype, typtypmod) ELSE format_type(atttypid, atttypmod) "
    "END FROM pg_catalog.pg_attribute "
    "JOIN pg_catalog.pg_type ON pg_type.oid = atttypid "
    "WHERE attrelid = to_regclass(%(whole)s) AND attnum > 0 AND NOT attisdropped",
    "mysql": "SELECT column_name, column_type FROM information_schema.columns "
    "WHERE table_schema = coalesce(%(schema)s, database()) AND table_name = %(name)s",
    "sqlite": "SELECT name, type FROM "
    "pragma_table_info(%(name)s, coalesce(%(schema)s, 'main'))",
}
_UNIQUE_KEYS = {
    "postgresql": "SELECT indexrelid, attname FROM pg_catalog.pg_index "
    "JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
    "WHERE indrelid = to_regclass(%(whole)s) AND indisunique "
    "AND indpred IS NULL AND indexprs IS NULL",
    "mysql": "SELECT index_name, column_name FROM information_schema.statistics "
    "WHERE table_schema = coalesce(%(schema)s, database()) AND table_name = %(name)s "
    "AND NOT non_unique",
    # An INTEGER PRIMARY KEY has no index of its own.
    "sqlite": "SELECT NULL, name FROM "
    "pragma_table_info(%(name)s, coalesce(%(schema)s, 'main')) WHERE pk > 0 UNION ALL "
    "SELECT keys.name, columns.name FROM "
    "pragma_index_list(%(name)s, coalesce(%(schema)s, 'main')) AS keys, "
    "pragma_index_info(keys.name, coalesce(%(schema)s, 'main')) AS columns "
    'WHERE keys."unique" AND NOT keys.partial',
}


def columns_of(connection: BaseDatabaseWrapper, table: str) -> dict[str, str]:
    """Return the types of a table's columns by name; empty if there is no table."""
    found = _about(connection, _COLUMNS, table)
    return {folded(connection, _whole(name)): kind.lower() for name, kind in found}


def _about(
    connection: BaseDatabaseWrapper, queries: dict[str, str], table: str
) -> list[tuple[Any, ...]]:
    schema, name = schema_and_name(table)
    place = {"whole": named(connection, table), "schema": schema, "name": name}
    return rows_of(connection, queries[connection.vendor], place)


def limit_of(connection: BaseDatabaseWrapper, kind: str) -> int | None:
    """Return the highest value that a column's type takes, None for no integer type."""
    if connection.vendor == "sqlite":
        # It keeps whole numbers whole in all of these, and has no limit but its own.
        counts = any(word in kind for word in ("int", "numeric", "decimal"))
        return MAX_NUMBER if counts else None
    word = re.match(r"[a-z]*", kind)
    limit = _LIMITS.get(word[0]) if word else None
    digits = re.match(r"(?:numeric|decimal)\((\d+)(?:,(\d+))?\)", kind)
    if limit is not None and digits:
        most = int("9" * (int(digits[1]) - int(digits[2] or 0)) or "0")
        return min(most, MAX_NUMBER)
    if limit is not None and "unsigned" in kind:
        limit = min(limit * 2 + 1, MAX_NUMBER)
    return limit


def has_unique_key(
    connection: BaseDatabaseWrapper, table: str, columns: set[str]
) -> bool:
    """Whether no two rows can have the same values in some of these columns."""
    keys: dict[Any, set[str | None]] = {}
    for key, column in _about(connection, _UNIQUE_KEYS, table):
        # SQLite has no name for an expression.
        of_key = None if column is None else folded(connection, _whole(column))
        keys.setdefault(key, set()).add(of_key)
    wanted = {folded(connection, column) for column in columns}
    return any(names <= wanted for names in keys.values())


def schema_and_name(table: str) -> tuple[str | None, str]:
    """Return the schema, None where none is named, and the name of a table."""
    *before, name = split_name(table)
    return (before[-1] if before else None), name


def _whole(name: str) -> str:
    """Return a name from the catalog so that it is not split."""
    return '"' + name.replace('"', '""') + '"'
