"""Lookups on ids: ``id__number``, ``id__collection``, ``id__node_tag``, ``id__anchor``
and ``id__bucket`` filter, order and annotate by a part of an id, on every database.

Each reads a stored column if the model has one, and computes the part otherwise.
`identifiers.parse` defines ids, `identifiers.anchor_in` anchors.
"""

from typing import Any

from django.db import NotSupportedError, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Col
from django.db.models.sql import Query

from django_hilo._database.dialects import database_of
from django_hilo.fields._text_ids import IdField
from django_hilo.fields.bucket import BucketField
from django_hilo.fields.lookups import mariadb, mysql, postgresql, sqlite
from django_hilo.fields.lookups.patterns import Sql
from django_hilo.identifiers import MAX_COLLECTION_LENGTH

_DATABASES: Any = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "mariadb": mariadb,
    "mysql": mysql,
}


def register() -> None:
    """Add the lookups to the fields of ids, and their functions to SQLite."""
    for transform in (Number, Collection, NodeTag, Anchor, Bucket):
        IdField.register_lookup(transform)
    sqlite.register()


class Part(models.Transform):
    """A part of an id; NULL for a text without it."""

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: BaseDatabaseWrapper, **kwargs: Any
    ) -> Sql:
        stored = self._stored_column()
        if stored is not None:
            sql, params = compiler.compile(stored)
            return sql, tuple(params)
        database = _DATABASES.get(database_of(connection))
        if database is None:
            raise NotSupportedError(
                f"__{self.lookup_name} works on SQLite, PostgreSQL, MariaDB and MySQL, "
                f"but not on {connection.display_name}."
            )
        lhs, params = compiler.compile(self.lhs)
        try:
            computed: Sql = database.sql_of(self._part(), lhs, tuple(params))
        except KeyError:  # that of a bucket
            raise NotSupportedError(
                f"{connection.display_name} cannot compute the RavenDB hash of an id. "
                f"{_remedy(self.lhs)}"
            ) from None
        return computed

    def _part(self) -> str:
        return self.lookup_name

    def _stored_column(self) -> Col | None:
        """Return the column that stores the values of the transform, or None.

        It is a `GeneratedField` of the transform, or the `BucketField` of a bucket.
        """
        read: Any = self.lhs
        # Definitions of indexes and generated columns have no table, and need the
        # expression itself.
        if not isinstance(read, Col) or read.alias is None:
            return None
        for field in read.target.model._meta.local_concrete_fields:
            if self._is_stored_by(field):
                return Col(read.alias, field, self.output_field)
        return None

    def _is_stored_by(self, field: Any) -> bool:
        if not field.generated:
            return False
        lhs: Any = self.lhs
        # F("id__anchor"), F("pk__anchor") and Anchor("id") are the same.
        found: Any = field.expression.resolve_expression(
            Query(field.model, alias_cols=False), allow_joins=False
        )
        return (
            type(found) is type(self)
            and isinstance(found.lhs, Col)
            and found.lhs.target == lhs.target
        )


class Number(Part):
    """The number of an id; NULL for any other text.

    In a series it is the number at the end of any text.
    """

    lookup_name = "number"
    output_field = models.BigIntegerField(name="number of an id")

    def _part(self) -> str:
        field: Any = self.lhs.output_field
        while field.remote_field is not None:
            field = field.target_field
        return "number_at_end" if getattr(field, "per", ()) else "number"


class Start(Part):
    """What is before the digits at the end of a text; no lookup."""

    lookup_name = "start"
    output_field = models.CharField()


class Collection(Part):
    """The collection of an id, as it is written; NULL for any other text."""

    lookup_name = "collection"
    output_field = models.CharField(max_length=MAX_COLLECTION_LENGTH)


class NodeTag(Part):
    """The node tag of an id, "" without one; NULL for any other text."""

    lookup_name = "node_tag"
    output_field = models.CharField(max_length=4)


class Anchor(Part):
    """The anchor that `identifiers.anchor_in` finds in any text."""

    lookup_name = "anchor"
    output_field = models.CharField()


class Bucket(Part):
    """The bucket of an id or any other text.

    SQLite computes it with the package xxhash (extra ``sharding``). Other databases
    need a `BucketField`; without one it raises NotSupportedError.
    """

    lookup_name = "bucket"
    output_field = models.PositiveIntegerField(name="bucket of an id")

    def _is_stored_by(self, field: Any) -> bool:
        if isinstance(field, BucketField):
            lhs: Any = self.lhs
            return bool(field.source_field == lhs.target)
        return super()._is_stored_by(field)


def _remedy(lhs: Any) -> str:
    field: Any = lhs.target if isinstance(lhs, Col) else None
    if field is None:
        return "Add bucket = BucketField() to the model."
    if field.is_relation:
        # Django reads the foreign key itself, and joins no table for its id.
        model = field.related_model._meta.label
        return f"Add bucket = BucketField() to {model} and query {field.name}__bucket."
    source = "" if field.name == "id" else f'source="{field.name}"'
    return f"Add bucket = BucketField({source}) to {field.model._meta.label}."
