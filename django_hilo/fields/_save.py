"""What a save or a ``bulk_create()`` knows of its ids, from step to step."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import repeat
from typing import Any

from django.db import models

from django_hilo.fields._late_keys import HIDDEN
from django_hilo.fields._notes import GIVEN


class Before:
    """The ids and keys of instances before a field gives them ids."""

    def __init__(self, field: Any, instances: Sequence[models.Model]) -> None:
        self.field = field
        # By identity: an instance without a key cannot be hashed.
        self._known: dict[int, tuple[models.Model, list[Any], list[Any]]] = {}
        model, name = type(instances[0]) if instances else field.model, field.attname
        found = vars(model._meta).setdefault("hilo_names", {})
        self._names = found.get(name) or found.setdefault(name, _names(field, model))
        self._noted = "adding", GIVEN + name, HIDDEN + name
        for each in instances:
            # Keys are never deferred, nor is an id that is missing.
            values = list(map(getattr, repeat(each), self._names))
            noted = list(map(getattr, repeat(each._state), self._noted, repeat(None)))
            self._known[id(each)] = each, values, noted

    def replace(self, instances: Iterable[Any], ids: Iterable[Any]) -> None:
        """Let those of the instances that were given ids keep these instead."""
        for each, id_of_row in zip(instances, ids, strict=True):
            if self._known.pop(id(each), None):
                setattr(each, self.field.attname, id_of_row)

    def restore(self) -> None:
        """Take the ids off again."""
        for instance, values, noted in self._known.values():
            for name, value in zip(self._names, values, strict=True):
                setattr(instance, name, value)
            for name, value in zip(self._noted, noted, strict=True):
                setattr(instance._state, name, value)


class Save:
    """The steps of one save."""

    def __init__(self) -> None:
        # To insert in, where gapless ids are given.
        self.blocks: list[AbstractContextManager[None]] = []
        # Of the ids that it gives.
        self.given: list[Before] = []
        # What the database told of the ids of rows, which may exist.
        self.told: list[tuple[Before, list[Any], list[Any]]] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """Enter all of the blocks, the last one innermost."""
        with ExitStack() as stack:
            for block in self.blocks:
                stack.enter_context(block)
            yield

    def take_off(self) -> None:
        """Take off the ids that were given, as with a BigAutoField."""
        # A later one knows what an earlier one gave.
        for before in reversed(self.given):
            before.restore()


def _names(field: Any, model: type[models.Model]) -> list[str]:
    """Return the attributes that a save may set: a field's, and the keys."""
    meta = model._meta
    links = list(meta.parents.values())
    keys = [each for each in meta.concrete_fields if each.primary_key or each in links]
    return [each.attname for each in (field, *keys)]
