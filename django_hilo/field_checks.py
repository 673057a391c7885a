"""System checks of one `HiLoField`; each id is explained in docs/checks.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db import models

from django_hilo.anchors import anchor_field
from django_hilo.conf import settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import MAX_NUMBER, check_collection, id_end

if TYPE_CHECKING:
    from django_hilo.fields import HiLoField


def check_field(field: HiLoField) -> list[checks.CheckMessage]:
    """Return what is wrong with a field, without any query."""
    return [
        *_check_collection(field),
        *_check_anchor(field),
        *_check_max_length(field),
        *_check_capacities(field),
        *_check_default(field),
    ]


def _check_collection(field: HiLoField) -> list[checks.CheckMessage]:
    try:
        check_collection(field.collection_name)
    except (InvalidDocumentId, TypeError) as error:
        return [
            checks.Error(
                f"The collection {field.collection_name!r} cannot stand in an id.",
                hint=f"{error} Set collection= on the field.",
                obj=field,
                id="django_hilo.E101",
            )
        ]
    return []


def _check_anchor(field: HiLoField) -> list[checks.CheckMessage]:
    anchor = field.anchor
    if anchor is None:
        return []
    if callable(anchor):
        name = getattr(anchor, "__qualname__", "<")
        if "<" in name:
            return [
                checks.Error(
                    f"The anchor {anchor!r} cannot be imported, so no migration can "
                    f"name it.",
                    hint="Make it a function of a module.",
                    obj=field,
                    id="django_hilo.E102",
                )
            ]
        return []
    try:
        last = anchor_field(field.model, anchor)
        if last is field or last.many_to_many or not last.concrete:
            raise FieldDoesNotExist(f"{last} holds no id of another object.")
    except (FieldDoesNotExist, AttributeError, TypeError) as error:
        return [
            checks.Error(
                f"The anchor {anchor!r} names no field.",
                hint=f"{error} Name a relation or field of the model, such as 'order' "
                f"or 'order__customer', or a function.",
                obj=field,
                id="django_hilo.E103",
            )
        ]
    return []


def _check_max_length(field: HiLoField) -> list[checks.CheckMessage]:
    longest = _longest(field)
    if longest is None or field.max_length is None or field.max_length >= longest:
        return []
    return [
        checks.Error(
            f"max_length={field.max_length} is less than the {longest} characters of "
            f"the longest id of {field.collection_name!r}.",
            hint=f"Set max_length={longest} or more (a server prefix comes on top).",
            obj=field,
            id="django_hilo.E104",
        )
    ]


def _longest(field: HiLoField, depth: int = 0) -> int | None:
    """Return the length of the longest id, None where an anchor's is not known."""
    tags = settings.NODE_TAG
    given = tags.values() if isinstance(tags, dict) else [tags]
    tag = max((str(tag) for tag in given), key=len, default="A")
    end = id_end(tag) if settings.SHOW_NODE_TAG else ""
    longest = len(f"{field.collection_name}/{MAX_NUMBER}{end}")
    if field.anchor is None:
        return longest
    if callable(field.anchor) or depth > 8:
        return None
    anchored = _longest_anchor(field, field.anchor, depth)
    return None if anchored is None else longest + 1 + anchored


def _longest_anchor(field: HiLoField, path: str, depth: int) -> int | None:
    try:
        last: Any = anchor_field(field.model, path)
    except (FieldDoesNotExist, AttributeError, TypeError):
        return None
    if isinstance(last, models.ForeignKey):
        related = last.remote_field.model
        last = related._meta.pk if isinstance(related, type) else None
    if isinstance(last, type(field)):
        return _longest(last, depth + 1)
    return getattr(last, "max_length", None)


def _check_capacities(field: HiLoField) -> list[checks.CheckMessage]:
    least = settings.CAPACITY if field.capacity is None else field.capacity
    most = settings.MAX_CAPACITY if field.max_capacity is None else field.max_capacity
    numbers = all(type(value) is int for value in (least, most))
    if numbers and 1 <= least <= most:
        return []
    return [
        checks.Error(
            f"capacity {least!r} and max_capacity {most!r} bound no range.",
            hint="Both must be whole numbers, with 1 <= capacity <= max_capacity.",
            obj=field,
            id="django_hilo.E105",
        )
    ]


def _check_default(field: HiLoField) -> list[checks.CheckMessage]:
    if not field.has_default() and not field.has_db_default():
        return []
    return [
        checks.Error(
            "A HiLoField makes its values itself and takes no default.",
            hint="Remove default= or db_default=.",
            obj=field,
            id="django_hilo.E106",
        )
    ]
