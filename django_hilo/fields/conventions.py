"""A field's convention: what makes the id to store out of the generated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from django_hilo.exceptions import HiLoError
from django_hilo.fields.base import parse_or_none
from django_hilo.fields.server_ids import is_request
from django_hilo.identifiers import parse

if TYPE_CHECKING:
    from django_hilo.fields.hilo import HiLoField


def apply_convention(field: HiLoField, instance: models.Model, document_id: str) -> str:
    """Return what a field's convention makes of a generated id.

    Raises `HiLoError` for what cannot be stored as an id, or would be given again.
    """
    assert field.convention is not None
    value: Any = field.convention(instance, document_id)
    if not isinstance(value, str) or not value or "\x00" in value:
        raise _refused(field, value, "it must be a text of at least one character")
    if value.startswith("/") or is_request(value):
        raise _refused(
            field, value, "it must neither start with '/' nor end in '|' or a separator"
        )
    made, given = parse_or_none(value), parse(document_id)
    same_family = made is not None and (
        made.collection.lower(),
        made.server_prefix,
        made.node_tag,
    ) == (given.collection.lower(), given.server_prefix, given.node_tag)
    if same_family and made is not None and made.number != given.number:
        raise _refused(
            field,
            value,
            f"the counter will give the number {made.number} to another object; "
            f"keep {given.number}, or leave the pattern of {document_id!r}",
        )
    return value


def _refused(field: HiLoField, value: object, reason: str) -> HiLoError:
    return HiLoError(f"The convention of {field} returned {value!r}: {reason}.")
