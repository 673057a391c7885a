"""SQL functions for connections to SQLite, which has no regular expressions."""

from functools import partial
from string import digits
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_hilo.fields.lookups.patterns import Sql, after_dollar, number_of
from django_hilo.identifiers import parse_or_none
from django_hilo.sharding import bucket_of


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    if part == "anchor":
        return after_dollar(text, params, f"INSTR({text}, '$')", "LENGTH")
    if part in {"start", "number_at_end"}:
        start = f"RTRIM({text}, '{digits}')"
        number = f"SUBSTR({text}, LENGTH({start}) + 1)"
        trimmed = f"LTRIM({number}, '0')"
        sql = number_of(number, trimmed, "LENGTH", "INTEGER")
        sql = start if part == "start" else sql
        return sql, params * sql.count(text)
    if part == "bucket":
        bucket_of("")  # Raise if xxhash is missing; SQLite hides errors of functions.
    return f"django_hilo_{part}({text})", params


def register() -> None:
    """Add the functions to all connections, including those that are open."""
    connection_created.connect(_add_functions, dispatch_uid=__name__)
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _add_functions(connection)


def _add_functions(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    if connection.vendor == "sqlite":
        for part in ("number", "collection", "node_tag", "bucket"):
            function = _bucket if part == "bucket" else partial(_part, part)
            create: Any = connection.connection.create_function
            # Indexes and generated columns take deterministic functions only.
            create(f"django_hilo_{part}", 1, function, deterministic=True)


def _part(part: str, value: Any) -> Any:
    # None has no part either.
    return getattr(parse_or_none(value), part, None)


def _bucket(value: Any) -> int | None:
    return bucket_of(value) if isinstance(value, str) else None
