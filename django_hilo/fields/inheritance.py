"""Keys along multi-table inheritance: a child's link contains the key of its parent."""

from __future__ import annotations

from django.db import models


def pass_keys_down(instance: models.Model, model: type[models.Model]) -> None:
    """Fill the empty links of an instance with the keys of its parents."""
    for parent, link in model._meta.parents.items():
        pass_keys_down(instance, parent)
        if link is not None and getattr(instance, link.attname) is None:
            setattr(instance, link.attname, getattr(instance, parent._meta.pk.attname))


def pass_keys_up(instance: models.Model, model: type[models.Model]) -> None:
    """Fill the empty keys of an instance's parents from the links, as save() does."""
    for parent, link in model._meta.parents.items():
        key = parent._meta.pk.attname
        if link is not None and getattr(instance, key, None) is None:
            setattr(instance, key, getattr(instance, link.attname))
        pass_keys_up(instance, parent)
