"""What Django's saves and the fields say to each other: `Ids`, `Save` and `Note`.

An object has one attribute on its ``_state`` for each field, a tuple of four: the id
that the field gave it, the alias that it was given for (None once a row has it), the
`Note` of what may become of it, if anything may, and whether receivers of ``pre_save``
must not see it. An *assigned* id is one that no row has yet: the save needs no UPDATE
first, and the id raises no floor. Every other id is *explicit*.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeVar

from django.db import IntegrityError, models
from django.db.models.base import ModelState

from django_hilo._database.transaction import Mark, Outcome

Instances = Sequence[models.Model]
# Explicit ids and their numbers; in series the keys are pairs of a series and an id.
Explicit = dict[Any, int]

# Followed by the attname of the field.
GIVEN = "hilo_given_"

_state_of = attrgetter("_state")

Result = TypeVar("Result")


@dataclass(eq=False)
class Note:
    """What may become of ids that were given together; it never changes.

    It stays in this process: a pickle has None in its place, so an id is all that is
    known of a pickled object once a row has it.
    """

    # The alias that they were assigned for.
    using: str
    # What becomes of the transaction that took the numbers; None: nobody can know.
    mark: Mark | None
    # The number of an id that a convention made.
    number: int | None = None
    # Whether a rollback takes the number back, and what the value was before it.
    is_gapless: bool = False
    before: Any = None

    @property
    def is_rolled_back(self) -> bool:
        """Whether the transaction that took the numbers was rolled back."""
        return self.mark is not None and self.mark.outcome is Outcome.ROLLED_BACK

    def __reduce__(self) -> Any:
        return type(None), ()

    def __deepcopy__(self, memo: object) -> Note:
        return self


class Ids(ABC):
    """What a field knows of the ids of its objects; each kind of fields has its own."""

    # Whether its numbers are taken one by one, in the caller's transaction.
    is_gapless = False
    # Whether receivers of pre_save see none on a new object, as with BigAutoField.
    is_set_late = False

    def __init__(self, field: Any) -> None:
        self.field = field
        self.attname: str = field.attname
        self.name = GIVEN + self.attname
        _make_room(self.name)

    @cached_property
    def is_key(self) -> bool:
        """Whether the field is the model's primary key, or a part of it."""
        return self.field.primary_key or self.field in self.field.model._meta.pk_fields

    @abstractmethod
    def refuse_update(
        self, instance: models.Model, using: str, names: Iterable[str] | None
    ) -> None:
        """Raise `HiLoError` if an update would write to, or with, a rolled-back id.

        ``names`` are the fields that are written; None: all.
        """

    @abstractmethod
    def is_rolled_back(self, instance: models.Model, using: str) -> bool:
        """Whether the number of an id of a row on ``using`` was rolled back."""

    @abstractmethod
    def assign(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> Explicit:
        """Give ids to the instances that have none, with one reservation at most.

        Returns the explicit ids with their numbers. Raises `HiLoError` for one
        that is absurd, and for a rolled-back id that another process may have. Without
        a ``save`` nobody takes the ids off again.
        """

    @abstractmethod
    def assign_on_conflict(self, instances: Instances, save: Save) -> Explicit:
        """Give ids for rows that are ignored or updated if they exist."""

    @abstractmethod
    def make_sure(self, instances: Instances, using: str) -> None:
        """Let instances keep ids that no other process can have; else `HiLoError`."""

    @abstractmethod
    def look_again(self, instance: models.Model, save: Save) -> bool:
        """Note an explicit id before its row is written; whether the id is assigned.

        Receivers of ``pre_save`` may have set it since `assign`.
        """

    @abstractmethod
    def explicit_ids(self, instances: Instances, using: str) -> Explicit:
        """Return the explicit ids that the field's own counter could give."""

    @abstractmethod
    def refused(self, instances: Instances, error: IntegrityError, using: str) -> None:
        """Drop a range if a row of others has one of its numbers."""

    @abstractmethod
    def inserted(self, instances: Instances) -> None:
        """Note that rows have the ids of instances."""

    @abstractmethod
    def raise_over(self, ids: Explicit, using: str) -> None:
        """Raise the counter to the numbers of explicit ids that were inserted."""


@cache
def _make_room(name: str) -> None:
    """Let objects have an attribute on their ``_state`` without a dict for each.

    From 3.11 on, Python has room for attributes that are new to a class while it has
    few objects.
    """
    state: Any = ModelState()
    state.fields_cache, state.db, state.adding = {}, None, True
    setattr(state, name, None)


def ids_of(model: type[models.Model]) -> list[Ids]:
    """Return what the fields of a model know of the ids of its objects."""
    fields, notes = model._meta.fields, vars(model._meta)
    # Django keeps the fields until one is added.
    known = notes.get("hilo_ids")
    if known is None or known[0] is not fields:
        found = [ids for ids in map(ids_of_field, fields) if ids is not None]
        # Gapless ones last: their counters stay locked until the commit.
        found.sort(key=lambda ids: ids.is_gapless)
        known = notes["hilo_ids"] = fields, found
    mine: list[Ids] = known[1]
    return mine


def ids_of_field(field: Any) -> Ids | None:
    """Return what a field knows of its ids; None for others, and for a copy of one."""
    ids = getattr(field, "ids", None)
    # A history (django-simple-history) copies a field, and changes its class.
    return ids if isinstance(ids, Ids) and ids.field is field else None


class Before:
    """The ids and keys of instances before a field gives them ids."""

    def __init__(self, ids: Ids, instances: Instances) -> None:
        self.ids, self._instances = ids, instances
        model, name = type(instances[0]) if instances else ids.field.model, ids.attname
        found = vars(model._meta).setdefault("hilo_names", {})
        names = found.get(name) or found.setdefault(name, _names(ids.field, model))
        # Column by column, in C. Keys are never deferred, nor is an id that is missing.
        self._values: dict[str, list[Any]] = {}
        for each in names:
            self._values[each] = list(map(getattr, instances, repeat(each)))
        states, self._noted = list(map(_state_of, instances)), dict[str, list[Any]]()
        for each in ("adding", ids.name):
            self._noted[each] = list(map(getattr, states, repeat(each), repeat(None)))
        # By identity: an instance without a key cannot be hashed.
        self._replaced: set[int] = set()

    def replace(self, instances: Iterable[Any], values: Iterable[Any]) -> None:
        """Let those of the instances that were given ids keep these instead."""
        given = set(map(id, self._instances))
        for each, value in zip(instances, values, strict=True):
            if id(each) in given:
                setattr(each, self.ids.attname, value)
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
    """A ``save()`` or ``bulk_create()``, and what its steps know of the ids.

    While Django writes the rows `running` knows it.
    """

    def __init__(
        self, model: type[models.Model], instances: Instances, using: str
    ) -> None:
        self.ids, self.using = ids_of(model), using
        # By identity: an instance without a key cannot be hashed.
        self.instances = frozenset(map(id, instances))
        # To insert in, where gapless ids are given.
        self.blocks: list[AbstractContextManager[None]] = []
        # Of the ids that it gives.
        self.given: list[Before] = []
        # The explicit ids, with their numbers; None until a row is inserted with one.
        self.explicit: dict[Ids, Explicit | None] = {}
        # Keys that are hidden from receivers of pre_save.
        self.late: list[tuple[models.Model, Ids, Any]] = []
        # Whether the database refused the INSERT.
        self.is_refused = False
        # What the database told of the ids of rows, which may exist.
        self.told: list[tuple[Before, list[Any], list[Any]]] = []

    def run(self, write: Callable[[], Result]) -> Result:
        """Call what writes the rows, and return its result."""
        around = running.save, running.instances
        try:
            running.save, running.instances = self, self.instances
            if not self.blocks:
                return write()
            with ExitStack() as stack:
                for block in self.blocks:  # the last one innermost
                    stack.enter_context(block)
                return write()
        except BaseException as error:
            self.show()
            # Not if a receiver, or a method around it, failed before or after.
            if self.is_refused and isinstance(error, IntegrityError):
                self.take_off()
            raise
        finally:
            # No call: a signal handler may raise at any.
            running.save, running.instances = around

    def take_off(self) -> None:
        """Take off the ids that were given, as with a BigAutoField."""
        # A later one knows what an earlier one gave.
        for before in reversed(self.given):
            before.restore()

    def hide(self, instance: models.Model, late: Iterable[Ids]) -> None:
        """Set keys to None, until the row is written: those that this save gave.

        And those that an earlier one gave, which failed.
        """
        just_given = {before.ids for before in self.given}
        for ids in late:
            given: Any = getattr(instance._state, ids.name, None)
            is_late = given and given[1] and (given[3] or ids in just_given)
            has_row = ids.is_key and not instance._state.adding
            if is_late and not has_row and given[0] == getattr(instance, ids.attname):
                setattr(instance._state, ids.name, (*given[:3], True))
                setattr(instance, ids.attname, None)
                self.late.append((instance, ids, given[0]))

    def show(self) -> None:
        """Set hidden keys again, unless a receiver has set others."""
        for instance, ids, key in self.late:
            if getattr(instance, ids.attname) is None:
                setattr(instance, ids.attname, key)


class _Running(threading.local):
    """The save that is running in this thread, and the instances that it writes."""

    save: Save | None = None
    instances: frozenset[int] = frozenset()

    def of(self, instance: models.Model) -> Save | None:
        """Return the save that writes an instance."""
        return self.save if id(instance) in self.instances else None


running = _Running()


def _names(field: Any, model: type[models.Model]) -> list[str]:
    """Return the attributes that a save may set: a field's, and the keys."""
    meta = model._meta
    links = list(meta.parents.values())
    keys = [each for each in meta.concrete_fields if each.primary_key or each in links]
    return list(dict.fromkeys(each.attname for each in (field, *keys)))
