"""Transforms for the parts of an id.

Each reads a stored column if the model has one, and computes the part otherwise.
"""

from __future__ import annotations

from typing import Any

from django.db import NotSupportedError, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Col

from django_hilo.fields.lookups import mariadb, postgresql, sqlite
from django_hilo.fields.lookups.stored import stored_column
from django_hilo.identifiers import MAX_COLLECTION_LENGTH
from django_hilo.sharding import bucket_of

Sql = tuple[str, tuple[Any, ...]]


class Part(models.Transform):
    """A part of an id; NULL for a text without it."""

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: BaseDatabaseWrapper, **kwargs: Any
    ) -> Sql:
        stored = stored_column(self)
        if stored is not None:
            sql, params = compiler.compile(stored)
            return sql, tuple(params)
        lhs, params = compiler.compile(self.lhs)
        compute = {
            "sqlite": self.on_sqlite,
            "postgresql": self.on_postgresql,
            "mysql": self.on_mariadb,
        }.get(connection.vendor)
        if compute is None:
            raise NotSupportedError(
                f"__{self.lookup_name} works on SQLite, PostgreSQL and MariaDB, not on "
                f"{connection.display_name}."
            )
        return compute(lhs, tuple(params))

    def on_sqlite(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        return f"{self.function}({lhs})", params

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        raise NotImplementedError  # pragma: no cover - each part has its own

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        raise NotImplementedError  # pragma: no cover - each part has its own


class Number(Part):
    """The number of an id; NULL for any other text."""

    lookup_name = "number"
    function = sqlite.NUMBER
    output_field = models.BigIntegerField()

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        return _repeating(postgresql.number(lhs), lhs, params)

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql, pattern = mariadb.number(lhs)
        return sql, (*params, pattern)


class Collection(Part):
    """The collection of an id, as it is written; NULL for any other text."""

    lookup_name = "collection"
    function = sqlite.COLLECTION
    output_field = models.CharField(max_length=MAX_COLLECTION_LENGTH)

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        return _repeating(postgresql.collection(lhs), lhs, params)

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql, pattern = mariadb.collection(lhs)
        return sql, (*params, pattern)


class NodeTag(Part):
    """The node tag of an id, "" without one; NULL for any other text."""

    lookup_name = "node_tag"
    function = sqlite.NODE_TAG
    output_field = models.CharField(max_length=4)

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        return _repeating(postgresql.node_tag(lhs), lhs, params)

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql, pattern = mariadb.node_tag(lhs)
        return sql, (*params, pattern)


class Anchor(Part):
    """The anchor that `identifiers.anchor_in` finds in any text."""

    lookup_name = "anchor"
    output_field = models.CharField()

    def on_sqlite(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql = _after_dollar(lhs, f"INSTR({lhs}, '$')", "LENGTH")
        return _repeating(sql, lhs, params)

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql = _after_dollar(lhs, postgresql.place_of_dollar(lhs), "LENGTH")
        return _repeating(sql, lhs, params)

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        sql = _after_dollar(lhs, mariadb.place_of_dollar(lhs), "CHAR_LENGTH")
        return _repeating(sql, lhs, params)


class Bucket(Part):
    """The bucket of an id or any other text.

    SQLite computes it with the package xxhash (extra ``sharding``). Other databases
    need a `BucketField`; without one it raises NotSupportedError.
    """

    lookup_name = "bucket"
    function = sqlite.BUCKET
    output_field = models.PositiveIntegerField()

    def on_sqlite(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        bucket_of("")  # Raise if xxhash is missing; SQLite hides errors of functions.
        return super().on_sqlite(lhs, params)

    def on_postgresql(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        raise NotSupportedError(self._advice("PostgreSQL"))

    def on_mariadb(self, lhs: str, params: tuple[Any, ...]) -> Sql:
        raise NotSupportedError(self._advice("MariaDB"))

    def _advice(self, database: str) -> str:
        field: Any = self.lhs.target if isinstance(self.lhs, Col) else None
        if field is None:
            remedy = "Add bucket = BucketField() to the model."
        elif field.is_relation:
            # Django reads the foreign key itself, and joins no table for its id.
            model = field.related_model._meta.label
            remedy = (
                f"Add bucket = BucketField() to {model}; ask for {field.name}__bucket."
            )
        else:
            source = "" if field.name == "id" else f'source="{field.name}"'
            label = field.model._meta.label
            remedy = f"Add bucket = BucketField({source}) to {label}."
        return f"{database} cannot compute RavenDB's hash of an id. {remedy}"


def _after_dollar(lhs: str, place: str, length: str) -> str:
    # Compare lengths: to some collations a space equals an empty text.
    return (
        f"CASE WHEN {place} BETWEEN 2 AND {length}({lhs}) - 1 "
        f"THEN SUBSTR({lhs}, {place} + 1) END"
    )


def _repeating(sql: str, lhs: str, params: tuple[Any, ...]) -> Sql:
    return sql, params * sql.count(lhs)
