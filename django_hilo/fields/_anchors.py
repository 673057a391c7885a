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
    if hasattr(value, "resolve_expression"):
        raise HiLoError(
            f"{instance._meta.label} cannot get an id: its anchor {anchor!r} is a "
            f"{type(value).__name__}, whose value only the database knows. Set a "
            f"value, or save the object that has it first, and refresh_from_db() it."
        )
    if value in (None, ""):
        raise HiLoError(
            f"{instance._meta.label} cannot get an id: its anchor {anchor!r} is empty. "
            f"Set it, and give the object it refers to an id first (assign_ids())."
        )
    return check_anchor(str(value))


def _follow(instance: Any, path: str) -> Any:
    """Return the value at the end, or an expression on the way to it."""
    names = path.split("__")
    for place, name in enumerate(names, start=1):
        field: Any = instance._meta.get_field(name)
        is_new = instance._state.adding or instance.pk is None
        if is_new and getattr(field, "generated", False):
            return field.expression
        if isinstance(field, models.ForeignKey) and not field.is_cached(instance):
            key = getattr(instance, field.attname)
            # Its object need not be read, and an expression would find any.
            is_end = place == len(names) and field.target_field.primary_key
            if is_end or hasattr(key, "resolve_expression"):
                return key
        instance = getattr(instance, name)
        if instance is None:
            break
    return instance


def anchor_text(anchor: str | models.Model) -> str:
    """Return the text that an anchor is in an id; raises `HiLoError` without one."""
    if not isinstance(anchor, models.Model):
        return check_anchor(anchor)
    if anchor.pk is None or hasattr(anchor.pk, "resolve_expression"):
        label = anchor._meta.label
        raise HiLoError(f"The {label} has no id to anchor to yet (see assign_ids()).")
    return str(anchor.pk)
