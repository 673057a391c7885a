"""The anchor of an instance: the id of the object that it belongs to, or a text."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import models

from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import check_anchor

# A path such as "order" or "order__customer", or a function of the instance that
# returns a text, a number or an object with an id.
Anchor = str | Callable[[models.Model], str | int | models.Model | None]


def anchor_of(instance: models.Model, anchor: Anchor) -> str:
    """Return the text of an instance's anchor; raises `HiLoError` if it has none."""
    try:
        value: Any = anchor(instance) if callable(anchor) else _follow(instance, anchor)
    except ObjectDoesNotExist:
        value = None
    is_known = isinstance(value, str | int | models.Model | None)
    if callable(anchor) and (isinstance(value, bool) or not is_known):
        raise HiLoError(
            f"{instance._meta.label} cannot get an id: its anchor {anchor!r} returned "
            f"{value!r}. Return a string, an integer or an object."
        )
    if isinstance(value, models.Model):
        value = value.pk
    if value in (None, ""):
        raise HiLoError(
            f"{instance._meta.label} cannot get an id: its anchor {anchor!r} is empty. "
            f"Set it, and give the object it refers to an id first (assign_ids())."
        )
    return check_anchor(str(value))


def _follow(instance: Any, path: str) -> Any:
    *relations, last = path.split("__")
    for name in relations:
        instance = getattr(instance, name)
        if instance is None:
            return None
    field = instance._meta.get_field(last)
    if isinstance(field, models.ForeignKey) and not field.is_cached(instance):
        # The key is known without reading the object that it names.
        last = field.attname if field.target_field.primary_key else last
    return getattr(instance, last)


def anchor_text(anchor: str | models.Model) -> str:
    """Return the text that an anchor is in an id; raises `HiLoError` without one."""
    if not isinstance(anchor, models.Model):
        return check_anchor(anchor)
    if anchor.pk is None:
        label = anchor._meta.label
        raise HiLoError(f"The {label} has no id to anchor to yet (see assign_ids()).")
    return str(anchor.pk)
