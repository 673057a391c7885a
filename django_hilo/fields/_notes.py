"""What an instance knows of an id that a field gave it, kept on its ``_state``.

One attribute for each field, a tuple of three: the id, the alias that it was assigned
for (None once a row has it), and the `Note` of what may become of it, if anything may.
An *assigned* id is one that no row has yet: the save needs no UPDATE first, and the id
raises no floor. Every other id is *explicit*. An instance is *handled* while a caller
of ``pre_save()`` looks after its ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models

from django_hilo._database.transaction import Mark, Outcome

Instances = Sequence[models.Model]

# Followed by the attname of the field.
GIVEN = "hilo_given_"


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


class ReadsNotes:
    """The part of a field that reads the notes about its ids."""

    attname: str
    primary_key: Any
    is_key: Any
    # Whether its numbers are taken one by one, in the caller's transaction.
    is_gapless = False
    # Whether receivers of pre_save see none on a new object, as with BigAutoField.
    is_set_late = False

    def value_of(self, instance: models.Model) -> Any:
        """Return the value of an instance, or None if the value was not loaded."""
        if self.primary_key:
            # Never deferred, and Python makes a __dict__ when it is asked for one.
            return getattr(instance, self.attname)
        return vars(instance).get(self.attname)

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is not an id."""
        return self.value_of(instance) in (None, "")

    def note_of(self, instance: models.Model) -> Note | None:
        """Return the note about an instance's id, if there is one."""
        given = getattr(instance._state, GIVEN + self.attname, None)
        if given is None or given[2] is None:
            return None
        note: Note = given[2]
        # An integer key may be held as a text.
        return note if str(given[0]) == str(self.value_of(instance)) else None

    def assigned_for(self, instance: models.Model) -> str | None:
        """Return the alias that an id was assigned for; None if a row may have it."""
        state = instance._state
        given = getattr(state, GIVEN + self.attname, None)
        if given is None or given[1] is None:
            return None
        # A field that was assigned is not deferred.
        value = getattr(instance, self.attname)
        if value != given[0] and str(value) != str(given[0]):
            return None
        if not state.adding and self.is_key:
            return None  # a plain manager's bulk_create() has inserted the row
        using: str = given[1]
        return using

    def is_rolled_back(self, instance: models.Model, using: str) -> bool:
        """Whether the number of an id of a row on ``using`` was rolled back."""
        note = self.note_of(instance)
        return note is not None and note.using == using and note.is_rolled_back

    def was_taken_back(self, instance: models.Model) -> bool:
        """Whether an instance has a gapless id that its rollback took back."""
        note = self.note_of(instance)
        return note is not None and note.is_gapless and note.is_rolled_back

    def note_inserted(self, instances: Instances) -> None:
        """Note that rows have the ids of instances."""
        name = GIVEN + self.attname
        for each in instances:
            given: Any = getattr(each._state, name, None)
            if given is not None:
                id, _, note = given
                setattr(each._state, name, note and (id, None, note))

    def sort_out(
        self, instances: Instances, using: str
    ) -> tuple[list[models.Model], list[models.Model]]:
        """Return the instances without an id, each once, and those to look at.

        These have another id than one that the field has just given for rows on
        ``using``, or its number was rolled back.
        """
        # By identity: an instance without a key cannot be hashed.
        missing: dict[int, models.Model] = {}
        others: dict[int, models.Model] = {}
        attname, name = self.attname, GIVEN + self.attname
        is_whole, is_key = bool(self.primary_key), bool(self.primary_key or self.is_key)
        fresh: Note | None = None
        for each in instances:
            state = each._state
            # As in `value_of`; one that was not loaded is not missing.
            value = (
                getattr(each, attname) if is_whole else vars(each).get(attname, self)
            )
            if value is None or value == "":
                missing[id(each)] = each
                continue
            given: Any = getattr(state, name, None)
            is_given = given is not None and given[1] == using and given[0] == value
            if is_given and (state.adding or not is_key):
                note = given[2]
                if note is fresh or note is None:
                    continue
                if not note.is_rolled_back:
                    fresh = note
                    continue
            others[id(each)] = each
        return list(missing.values()), list(others.values())


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(each): each for each in instances}.values())


def set_handled(instances: Iterable[Any], is_handled: bool) -> None:
    """Note whether a caller of ``pre_save()`` looks after the instances' ids."""
    for instance in instances:
        instance._state.hilo_handled = is_handled


def id_fields(model: type[models.Model]) -> list[Any]:
    """Return the fields that give a model's objects their ids."""
    fields, notes = model._meta.fields, vars(model._meta)
    # Django keeps the fields until one is added.
    known = notes.get("hilo_fields")
    if known is None or known[0] is not fields:
        found: list[Any] = [each for each in fields if isinstance(each, ReadsNotes)]
        found = [each for each in found if not each.is_copy]
        # Gapless ones last: their counters stay locked until the commit.
        found.sort(key=lambda field: bool(field.is_gapless))
        known = notes["hilo_fields"] = fields, found
    return known[1]
