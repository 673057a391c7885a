"""What an instance knows of an id that a field gave it, kept on its ``_state``.

Two attributes for each field: the id, and a `Note`, which all ids that were given
together share. An *assigned* id is one that no row has yet: the save needs no UPDATE
first, and the id raises no floor. Every other id is *explicit*. An instance is
*handled* while a caller of ``pre_save()`` looks after its ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from django.db import models

from django_hilo._database.transaction import Mark, Outcome

Instances = Sequence[models.Model]

# Each is followed by the attname of the field.
GIVEN = "hilo_given_"
NOTE = "hilo_note_"
# The ids that an instance had to give up, by attname.
FORMER = "hilo_former"


class Doubt:
    """Ids that were refused together, and those of them that rows have."""

    def __init__(
        self, ids: list[Any], with_rows: set[str] | None, is_certain: bool
    ) -> None:
        self.ids = ids
        # As texts. None: the database has not named them, and was not asked yet.
        self.with_rows = with_rows
        # Whether the database says that a row has one of them.
        self.is_certain = is_certain


@dataclass(eq=False)
class Note:
    """What may become of ids that were given together; it never changes."""

    # The alias that they were assigned for.
    using: str
    # What becomes of the transaction that took the numbers; None: it does not matter.
    mark: Mark | None = None
    # Whether their rows were inserted.
    is_inserted: bool = False
    # The number of an id that a convention made.
    number: int | None = None
    # Whether a rollback takes the number back, and what the value was before it.
    is_gapless: bool = False
    before: Any = None
    # Whether they were made sure of after a rollback.
    is_kept: bool = False
    doubt: Doubt | None = None

    @cached_property
    def inserted(self) -> Note | None:
        """The note once the rows are inserted, if a rollback can take them back."""
        return replace(self, is_inserted=True, doubt=None) if self.mark else None

    @property
    def is_rolled_back(self) -> bool:
        """Whether the transaction that took the numbers was rolled back."""
        return self.mark is not None and self.mark.outcome is Outcome.ROLLED_BACK

    @property
    def is_doubtful(self) -> bool:
        """Whether rows of others may have the ids now."""
        return self.doubt is not None or self.is_rolled_back

    def is_fresh(self, using: str) -> bool:
        """Whether the ids are for rows on an alias that were never inserted."""
        is_other = self.is_inserted or self.using != using
        return not (is_other or self.is_doubtful)


# One for each alias.
lasting_note = cache(Note)


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
        note: Note | None = getattr(instance._state, NOTE + self.attname, None)
        if note is None:
            return None
        given = getattr(instance._state, GIVEN + self.attname)
        # An integer key may be held as a text.
        return note if str(given) == str(self.value_of(instance)) else None

    def assigned_for(self, instance: models.Model) -> str | None:
        """Return the alias that an id was assigned for; None if a row may have it."""
        state = instance._state
        note: Note | None = getattr(state, NOTE + self.attname, None)
        if note is None or note.is_inserted:
            return None
        # A field that was assigned is not deferred.
        value, given = (
            getattr(instance, self.attname),
            getattr(state, GIVEN + self.attname),
        )
        if value != given and str(value) != str(given):
            return None
        if not state.adding and self.is_key:
            return None  # a plain manager's bulk_create() has inserted the row
        return note.using

    def was_taken_back(self, instance: models.Model) -> bool:
        """Whether an instance has a gapless id that its rollback took back."""
        note = self.note_of(instance)
        return note is not None and note.is_gapless and note.is_rolled_back

    def sort_out(
        self, instances: Instances, using: str
    ) -> tuple[list[models.Model], list[models.Model]]:
        """Return the instances without an id, each once, and those to look at.

        These have another id than one that the field has just given for rows on
        ``using``, or a row of others may have it.
        """
        # By identity: an instance without a key cannot be hashed.
        missing: dict[int, models.Model] = {}
        others: dict[int, models.Model] = {}
        attname, given, name = self.attname, GIVEN + self.attname, NOTE + self.attname
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
            note = getattr(state, name, None)
            if note is not fresh and note is not None and note.is_fresh(using):
                fresh = note
            is_given = note is not None and note is fresh
            if (
                not is_given
                or getattr(state, given) != value
                or (is_key and not state.adding)
            ):
                others[id(each)] = each
        return list(missing.values()), list(others.values())


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
