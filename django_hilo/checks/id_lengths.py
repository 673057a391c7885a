"""The longest id that a field may have to store."""

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models

from django_hilo.conf import settings
from django_hilo.fields import HiLoField
from django_hilo.fields._series import SeriesRule
from django_hilo.identifiers import MAX_NUMBER, IdFormat

# What a path to a field raises if the field does not exist.
NO_FIELD = (FieldDoesNotExist, AttributeError, TypeError)

# How many anchored models the longest id of a field is followed through.
_MAX_DEPTH = 8


def longest_id(field: HiLoField, depth: int = 0) -> int | None:
    """Return the length of the longest id, or None if it is not known."""
    if field.convention is not None:
        return None
    tags = settings.NODE_TAG
    configured = tags.values() if isinstance(tags, dict) else [tags]
    tag = max((str(tag) for tag in configured), key=len, default="A")
    parts = (field.collection_name, "/", "", tag if settings.SHOW_NODE_TAG else "")
    longest = len(IdFormat.of(*parts).text(MAX_NUMBER))
    if field.anchor is None:
        return longest
    if callable(field.anchor) or depth > _MAX_DEPTH:
        return None
    anchored = _longest_anchor(field, field.anchor, depth)
    return None if anchored is None else longest + 1 + anchored


def least_in_series(rule: SeriesRule) -> int | None:
    """Return the length of the longest number with the shortest other values."""
    if rule.pieces is None:
        return None
    length = rule.width or len(str(MAX_NUMBER))
    for piece in rule.pieces:
        least = 4 if (piece.path or "").endswith(".year") else 1
        length += len(piece.text) + (least if piece.path else 0)
    return length


def _longest_anchor(field: HiLoField, path: str, depth: int) -> int | None:
    try:
        last: Any = end_of_path(field.model, path)
    except NO_FIELD:
        return None
    if isinstance(last, models.ForeignKey):
        related = last.remote_field.model
        last = related._meta.pk if isinstance(related, type) else None
    if isinstance(last, type(field)):
        return longest_id(last, depth + 1)
    return getattr(last, "max_length", None)


def end_of_path(model: type[models.Model], path: str) -> Any:
    """Return the last field of a path; raises one of `NO_FIELD`."""
    *relations, last = path.split("__")
    for name in relations:
        related = model._meta.get_field(name).related_model
        if not isinstance(related, type):
            raise FieldDoesNotExist(f"{model._meta.label}.{name} is not a relation.")
        model = related
    return model._meta.get_field(last)
