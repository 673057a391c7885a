"""The column that stores the values of a transform, if the model has one."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import Col
from django.db.models.sql import Query

from django_hilo.fields import BucketField


def stored_column(transform: models.Transform) -> Col | None:
    """Return the column that stores a transform's values, or None.

    It is a `GeneratedField` of the transform, or the `BucketField` of a bucket.
    """
    read: Any = transform.lhs
    # Definitions of indexes and generated columns have no table, and need the
    # expression itself.
    if not isinstance(read, Col) or read.alias is None:
        return None
    for field in read.target.model._meta.local_concrete_fields:
        if _holds_bucket(field, transform) or _is_generated_by(field, transform):
            return Col(read.alias, field, transform.output_field)
    return None


def _is_generated_by(field: Any, transform: Any) -> bool:
    if not field.generated:
        return False
    # F("id__anchor"), F("pk__anchor") and Anchor("id") are the same.
    found = field.expression.resolve_expression(
        Query(field.model, alias_cols=False), allow_joins=False
    )
    return _is_same(found, transform)


def _is_same(found: Any, transform: Any) -> bool:
    return (
        type(found) is type(transform)
        and isinstance(found.lhs, Col)
        and found.lhs.target == transform.lhs.target
    )


def _holds_bucket(field: Any, transform: Any) -> bool:
    return (
        isinstance(field, BucketField)
        and transform.lookup_name == "bucket"
        and field.model._meta.get_field(field.source) == transform.lhs.target
    )
