"""New integer keys, which receivers of ``pre_save`` don't see, as with BigAutoField.

A save takes the number first, hides it, and sets it when the row is written.
"""

from collections.abc import Iterable
from typing import Any

from django.db import models

# Followed by the attname of the field; it stays, for a save that fails.
HIDDEN = "hilo_hidden_"


def is_to_hide(instance: models.Model, field: Any) -> bool:
    """Whether a save gives an instance its key, or has given it and failed."""
    key = getattr(instance, field.attname)
    if key is None or key == "":
        return True
    hidden = getattr(instance._state, HIDDEN + field.attname, None)
    return key == hidden and field.assigned_for(instance) is not None


def hide(instance: models.Model, fields: Iterable[Any]) -> None:
    """Set the keys of an instance to None, and remember them."""
    for field in fields:
        key = getattr(instance, field.attname)
        setattr(instance._state, HIDDEN + field.attname, key)
        setattr(instance, field.attname, None)


def show(instance: models.Model, fields: Iterable[Any]) -> None:
    """Set hidden keys again, unless a receiver has set others."""
    for field in fields:
        key = getattr(instance._state, HIDDEN + field.attname, None)
        if key is not None and getattr(instance, field.attname) is None:
            setattr(instance, field.attname, key)
