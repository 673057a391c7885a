"""Notes about the ids of an instance that a save reads, kept on its ``_state``.

An *assigned* id is one that a field gave and that no row has yet: the save needs no
UPDATE first, and the id raises no floor. Every other id is *explicit*. A *note* tells
of an id whose number the caller's transaction took, and may lose by its rollback, or
that was refused, since a row of others has it. An instance is *handled* while a caller
of ``pre_save()`` looks after its ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import models

from django_hilo._database.transaction import Mark

Instances = Sequence[models.Model]

# Each is followed by the attname of the field. The first two are no tuple, which would
# be work for the garbage collector, as objects come by the hundred thousand.
ASSIGNED = "hilo_assigned_"
ALIAS = "hilo_alias_"
# A `Note`.
NOTE = "hilo_note_"
# The ids that an instance had to give up, by attname.
FORMER = "hilo_former"
# Whether an instance in memory that it refers to has or had a doubtful id.
DOUBTS = "hilo_doubts"


class Doubt:
    """Ids that were refused together, and those of them that rows have."""

    def __init__(self, ids: list[Any], with_rows: set[Any] | None) -> None:
        self.ids = ids
        # None: the database has not named them, and was not asked yet.
        self.with_rows = with_rows


class Note(NamedTuple):
    """What may become of an id that was taken in a transaction, or refused."""

    id: Any
    # The alias that it was assigned for.
    using: str
    number: int = 0
    # What became of the transaction; None: nobody can know, or it does not matter.
    mark: Mark | None = None
    # Whether a rollback takes the number back, and what the value was before it.
    is_gapless: bool = False
    before: Any = None
    # Whether it was made sure of after a rollback.
    is_kept: bool = False
    doubt: Doubt | None = None

    @property
    def is_rolled_back(self) -> bool:
        """Whether the transaction that took it was rolled back."""
        return self.mark is not None and self.mark.is_rolled_back

    @property
    def is_doubtful(self) -> bool:
        """Whether a row of others may have the id now."""
        return self.doubt is not None or self.is_rolled_back


class ReadsNotes:
    """The part of a field that reads the notes about its ids."""

    attname: str
    primary_key: Any
    is_key: Any
    # Whether its numbers are taken one by one, in the caller's transaction.
    is_gapless = False

    def value_of(self, instance: models.Model) -> Any:
        """Return the value of an instance, or None if the value was not loaded."""
        if self.primary_key:
            # Never deferred, and Python makes a __dict__ when it is asked for one.
            return getattr(instance, self.attname)
        return vars(instance).get(self.attname)

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is not an id."""
        if self.primary_key:  # as in `value_of`
            return getattr(instance, self.attname) in (None, "")
        return vars(instance).get(self.attname, self) in (None, "")

    def assigned_for(self, instance: models.Model) -> str | None:
        """Return the alias that an id was assigned for; None if a row may have it."""
        assigned = getattr(instance._state, ASSIGNED + self.attname, None)
        # A field that was assigned is not deferred.
        if assigned is None or getattr(instance, self.attname) != assigned:
            return None
        if not instance._state.adding and self.is_key:
            return None  # a plain manager's bulk_create() has inserted the row
        using: str = getattr(instance._state, ALIAS + self.attname)
        return using

    def note_of(self, instance: models.Model) -> Note | None:
        """Return the note about an instance's id, if there is one."""
        note: Note | None = getattr(instance._state, NOTE + self.attname, None)
        return note if note and note.id == self.value_of(instance) else None

    def was_taken_back(self, instance: models.Model) -> bool:
        """Whether an instance has a gapless id that its rollback took back."""
        note = self.note_of(instance)
        return note is not None and note.is_gapless and note.is_rolled_back


def remember_former(instance: models.Model, attname: str, id: Any) -> None:
    """Remember an id that an instance had to give up."""
    former = getattr(instance._state, FORMER, None) or {}
    former.setdefault(attname, set()).add(id)
    setattr(instance._state, FORMER, former)


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(each): each for each in instances}.values())


def set_handled(instances: Iterable[Any], is_handled: bool) -> None:
    """Note whether a caller of ``pre_save()`` looks after the instances' ids."""
    for instance in instances:
        instance._state.hilo_handled = is_handled
