"""What a save or a ``bulk_create()`` knows of its ids, from step to step."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import repeat
from operator import attrgetter
from typing import Any

from django.db import models

from django_hilo.fields._late_keys import HIDDEN
from django_hilo.fields._notes import GIVEN

_state_of = attrgetter("_state")


class Before:
    """The ids and keys of instances before a field gives them ids."""

    def __init__(self, field: Any, instances: Sequence[models.Model]) -> None:
        self.field, self._instances = field, instances
        model, name = type(instances[0]) if instances else field.model, field.attname
        found = vars(model._meta).setdefault("hilo_names", {})
        names = found.get(name) or found.setdefault(name, _names(field, model))
        # Column by column, in C. Keys are never deferred, nor is an id that is missing.
        self._values: dict[str, list[Any]] = {}
        for each in names:
            self._values[each] = list(map(getattr, instances, repeat(each)))
        states, self._noted = list(map(_state_of, instances)), dict[str, list[Any]]()
        for each in ("adding", GIVEN + name, HIDDEN + name):
            self._noted[each] = list(map(getattr, states, repeat(each), repeat(None)))
        # By identity: an instance without a key cannot be hashed.
        self._replaced: set[int] = set()

    def replace(self, instances: Iterable[Any], ids: Iterable[Any]) -> None:
        """Let those of the instances that were given ids keep these instead."""
        given = set(map(id, self._instances))
        for each, id_of_row in zip(instances, ids, strict=True):
            if id(each) in given:
                setattr(each, self.field.attname, id_of_row)
                self._replaced.add(id(each))

    def restore(self) -> None:
        """Take the ids off again."""
        for place, each in enumerate(self._instances):
            if id(each) not in self._replaced:
                for name, values in self._values.items():
                    setattr(each, name, values[place])
                for name, values in self._noted.items():
                    setattr(each._state, name, values[place])


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
    return list(dict.fromkeys(each.attname for each in (field, *keys)))
