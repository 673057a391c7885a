"""Keys along multi-table inheritance: a child's link contains the key of its parent."""

from collections.abc import Iterable
from typing import Any

from django.db import models


def pass_keys_down(instances: Iterable[models.Model], model: Any) -> None:
    """Fill the empty links of instances with the keys of their parents."""
    for parent, link in model._meta.parents.items():
        pass_keys_down(instances, parent)
        for each in instances if link is not None else ():
            if getattr(each, link.attname) is None:
                setattr(each, link.attname, getattr(each, parent._meta.pk.attname))


def pass_keys_up(instance: models.Model, model: Any) -> None:
    """Fill the empty keys of an instance's parents from the links, as save() does."""
    for parent, link in model._meta.parents.items():
        key = parent._meta.pk.attname
        if link is not None and getattr(instance, key, None) is None:
            setattr(instance, key, getattr(instance, link.attname))
        pass_keys_up(instance, parent)
