"""Ids that ask for another: ``orders|`` and ``orders/``, as RavenDB has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from django_hilo.conf import settings
from django_hilo.identifiers import anchor_in

if TYPE_CHECKING:
    from django_hilo.fields.hilo import HiLoField

GAPLESS = "|"


def is_request(value: Any) -> bool:
    """Whether an id ends as one does that asks for another; anchors may end so."""
    return (
        isinstance(value, str)
        and not value[-1:].isalnum()  # as most end, so that no setting is read
        and value.endswith((GAPLESS, settings.SEPARATOR))
        and anchor_in(value) is None
    )


def asks_for_gapless(value: Any) -> bool:
    """Whether an id asks for the next gapless one."""
    return is_request(value) and bool(value.endswith(GAPLESS))


def check_request(value: str, field: HiLoField) -> None:
    """Raise ValidationError for what a field's ids may not ask for."""
    collection = field.collection_name
    if not field.server_ids:
        raise ValidationError(
            _(
                "The id “%(id)s” ends in “%(end)s”, so it asks for an id, which this "
                "field does not take: set server_ids=True on it, or leave the id out."
            ),
            code="server_ids",
            params={"id": value, "end": value[-1]},
        )
    if value[:-1].lower() != collection.lower():
        raise ValidationError(
            _("The id “%(id)s” asks for an id of another collection than “%(own)s”."),
            code="server_ids",
            params={"id": value, "own": collection},
        )
