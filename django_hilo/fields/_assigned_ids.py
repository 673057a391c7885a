"""Ids that are given before the row is inserted: what all kinds of fields share.

Numbers come from the field's counter. Gapless ones have methods of their own, beside
their field.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

from django.db import IntegrityError, models

from django_hilo._allocation import explicit_ids
from django_hilo._allocation.allocate import allocate, allocate_one
from django_hilo._allocation.burnt_numbers import sure_numbers
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.find import find
from django_hilo.conf import settings
from django_hilo.counters.gapless import seed_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.fields._ids import Before, Explicit, Ids, Instances, Note, Save
from django_hilo.identifiers import IdFormat, check_separator


class AssignedIds(Ids):
    """The ids of a field whose numbers come from its counter."""

    @abstractmethod
    def give(self, instances: list[models.Model], using: str) -> None:
        """Give ids to instances that have none."""

    @abstractmethod
    def number_in(self, value: Any, using: str) -> int | None:
        """Return the number of an id that the counter could give, None for others."""

    # What gapless ids need.

    def gapless_parts(
        self, instances: list[models.Model], using: str
    ) -> Iterable[tuple[str, IdFormat, list[models.Model]]]:
        """Return the gapless counter of instances, its format, and the instances."""
        collection = self.field.collection_name
        format = IdFormat.of(collection, check_separator(settings.SEPARATOR))
        return [(collection.lower(), format, instances)]

    def seed_gapless(self, ids: Explicit, using: str) -> None:
        """Raise the gapless counter to the numbers of explicit ids."""
        seed_gapless_number(self.field.collection_name, max(ids.values()), using)

    def end_of(self, instance: models.Model) -> str:
        """Return what follows the number in the id of an instance."""
        return ""

    def counter(self, using: str) -> Counter:
        """Return the counter of rows on ``using``."""
        return find(self.field, using)

    def assign(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> Explicit:
        missing, others = self._sort_out(instances, using)
        found: Explicit = {}
        if others:
            self.make_sure(others, using)
            found = self.check_explicit(others, using)
        if missing:
            if found:
                self.avoid(found, using)
            if save is not None:
                save.given.append(Before(self, missing))
            self.give(missing, using)
        if others:
            self.answer(others, found, using, save)
        return found

    def answer(
        self,
        others: list[models.Model],
        found: Explicit,
        using: str,
        save: Save | None,
    ) -> None:
        """Give ids to those of the others whose ids are RavenDB's requests for one."""

    def assign_on_conflict(self, instances: Instances, save: Save) -> Explicit:
        if any(self.needs_gapless(each) for each in instances):
            raise ValueError(
                f"{self.field} assigns gapless ids, and a row that is ignored or "
                f"updated on conflict would leave a gap: omit ignore_conflicts and "
                f"update_conflicts, or set the ids."
            )
        return self.assign(instances, save.using, save)

    def needs_gapless(self, instance: models.Model) -> bool:
        """Whether the id that an instance needs is a gapless one."""
        return False

    def look_again(self, instance: models.Model, save: Save) -> bool:
        alias = self.assigned_for(instance)
        is_explicit = alias != save.using and not self.is_missing(instance)
        if is_explicit and not self.is_noted(instance, save.explicit.get(self) or {}):
            is_new, using = instance._state.adding, save.using
            found = self.check_explicit([instance], using) if is_new else None
            save.explicit[self] = found
        return alias is not None

    def is_noted(self, instance: models.Model, found: Explicit) -> bool:
        """Whether the explicit id of an instance is among those that were found."""
        return str(self.value_of(instance)) in found

    def refused(self, instances: Instances, error: IntegrityError, using: str) -> None:
        """Keep the range: a text id of others is in nobody's way twice."""

    def inserted(self, instances: Instances) -> None:
        for each in instances:
            given: Any = getattr(each._state, self.name, None)
            if given is not None:
                id, _, note, _ = given
                setattr(each._state, self.name, note and (id, None, note, False))

    # What is known of the ids of instances.

    def value_of(self, instance: models.Model) -> Any:
        """Return the value of an instance, or None if the value was not loaded."""
        if self.field.primary_key:
            # Never deferred, and Python makes a __dict__ when it is asked for one.
            return getattr(instance, self.attname)
        return vars(instance).get(self.attname)

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is not an id."""
        return self.value_of(instance) in (None, "")

    def note_of(self, instance: models.Model) -> Note | None:
        """Return the note about an instance's id, if there is one."""
        given = getattr(instance._state, self.name, None)
        if given is None or given[2] is None:
            return None
        note: Note = given[2]
        # An integer key may be held as a text.
        return note if str(given[0]) == str(self.value_of(instance)) else None

    def assigned_for(self, instance: models.Model) -> str | None:
        """Return the alias that an id was assigned for; None if a row may have it."""
        state = instance._state
        given = getattr(state, self.name, None)
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
        note = self.note_of(instance)
        return note is not None and note.using == using and note.is_rolled_back

    def was_taken_back(self, instance: models.Model) -> bool:
        """Whether an instance has a gapless id that its rollback took back."""
        note = self.note_of(instance)
        return note is not None and note.is_gapless and note.is_rolled_back

    def _sort_out(
        self, instances: Instances, using: str
    ) -> tuple[list[models.Model], list[models.Model]]:
        """Return the instances without an id, each once, and those to look at.

        These have another id than one that the field has just given for rows on
        ``using``, or its number was rolled back.
        """
        # In one loop each: many objects do not fit into the processor's cache.
        attname, name, is_key = self.attname, self.name, self.is_key
        is_whole = self.field.primary_key
        # By identity: an instance without a key cannot be hashed.
        missing: dict[int, models.Model] = {}
        others: dict[int, models.Model] = {}
        copies = []
        fresh: Note | None = None
        for each in instances:
            # As in `value_of`; one that was not loaded is not missing.
            value = (
                getattr(each, attname) if is_whole else vars(each).get(attname, self)
            )
            state = each._state
            if value is None or value == "":
                missing[id(each)] = each
                # A new object that refers to another one has the alias of that one.
                if state.db is not None:
                    copies.append(each)
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
        if copies:
            self.load(copies)
        return list(missing.values()), list(others.values())

    def load(self, copies: Instances) -> None:
        """Read what copies of rows lack; without a key Django refuses it.

        With its new key a copy would read another row, or none.
        """
        inserted = {kind: _inserted(kind) for kind in set(map(type, copies))}
        for each in copies if self.is_key else ():
            if not each.__dict__.keys() >= inserted[type(each)]:
                for name in inserted[type(each)].difference(each.__dict__):
                    getattr(each, name)

    def set_ids(
        self,
        instances: Instances,
        values: Sequence[Any],
        using: str,
        notes: Iterable[Note | None],
        is_late: bool = False,
    ) -> None:
        """Set ids that rows on ``using`` are to have; ``notes`` may be without end."""
        max_length = self.field.max_length
        if max_length is not None and max(map(len, values)) > max_length:
            longest = max(values, key=len)
            raise HiLoError(
                f"The id {longest!r} has {len(longest)} characters, but {self.field} "
                f"allows {max_length}. Raise max_length and migrate."
            )
        attname, name, is_key = self.attname, self.name, self.is_key
        for instance, value, note in zip(instances, values, notes):  # noqa: B905 - without end
            state = instance._state
            setattr(instance, attname, value)
            setattr(state, name, (value, using, note, is_late))
            if is_key and not state.adding:
                state.adding = True  # a copy, made by setting the key to None

    def take_ids(self, n: int, using: str) -> tuple[list[Any], Iterable[Note | None]]:
        """Return the next ids, for one reservation at most, and a note for each."""
        counter = find(self.field, using)
        if n == 1:
            value, slices = allocate_one(counter)
            return [value], notes_of(slices, using) if slices else _LASTING
        slices = allocate(counter, n)
        return counter.ids_of(slices), notes_of(slices, using)

    # Explicit ids.

    def check_explicit(self, instances: Instances, using: str) -> Explicit:
        """Return the explicit ids; raise `HiLoError` if a number is absurdly high."""
        found = self.explicit_ids(instances, using)
        if found:
            self.check_jump(found, using)
        return found

    def note_explicit(self, value: Any) -> None:
        """Note an explicit id, before its row is inserted."""

    def explicit_values(
        self, instances: Instances, using: str
    ) -> Iterator[tuple[models.Model, Any, str | None]]:
        """Yield what has an id not assigned for ``using``, it, and its alias if any.

        An id that was taken back is not explicit: its number comes again.
        """
        for each in instances:
            alias = self.assigned_for(each)
            value = None if alias == using else self.value_of(each)
            if value not in (None, "") and not self.was_taken_back(each):
                if hasattr(value, "resolve_expression"):
                    text = f"{self.field} cannot raise its counter to an expression. "
                    text += f"Run manage.py hilo_raise_max --database={using}"
                    warnings.warn(text, RuntimeWarning, stacklevel=2)
                if each._state.adding:
                    self.note_explicit(value)
                yield each, value, alias

    def explicit_ids(self, instances: Instances, using: str) -> Explicit:
        found: Explicit = {}
        for _, value, alias in self.explicit_values(instances, using):
            if alias is None or not self.shares_counter(alias, using):
                number = self.number_in(value, using)
                if number is not None:
                    found[str(value)] = number
        return found

    def shares_counter(self, alias: str, using: str) -> bool:
        """Whether rows on two databases have one counter: it gave such an id."""
        return self.counter(alias).key == self.counter(using).key

    def by_counter(
        self, ids: Explicit, using: str
    ) -> Iterable[tuple[Counter, dict[str, int]]]:
        """Return counters, each with the explicit ids that it could give."""
        return [(self.counter(using), ids)]

    def check_jump(self, ids: Explicit, using: str) -> None:
        """Raise `HiLoError` if one of the numbers is absurdly high."""
        for counter, numbers in self.by_counter(ids, using):
            highest = max(numbers, key=lambda id: numbers[id])
            explicit_ids.check_jump(counter, numbers[highest], highest)

    def avoid(self, ids: Explicit, using: str) -> None:
        """Give none of the numbers to the objects that are saved beside them."""
        for counter, numbers in self.by_counter(ids, using):
            explicit_ids.avoid(counter, list(numbers.values()))

    def raise_over(self, ids: Explicit, using: str) -> None:
        for counter, numbers in self.by_counter(ids, using):
            explicit_ids.record(counter, list(numbers.values()), using)

    # The ids of objects whose rows, and numbers, were rolled back.

    def make_sure(self, instances: Instances, using: str) -> None:
        lost = [each for each in instances if self.is_rolled_back(each, using)]
        lost = [each for each in lost if not self.was_taken_back(each)]
        for counter, mine in self.counters_of(lost, using) if lost else ():
            self._keep_or_refuse(mine, counter, using)

    def counters_of(
        self, instances: list[models.Model], using: str
    ) -> Iterable[tuple[Counter, list[models.Model]]]:
        """Return the counters that gave ids, each with its instances."""
        return [(self.counter(using), instances)]

    def _keep_or_refuse(self, lost: Instances, counter: Counter, using: str) -> None:
        """Let rolled-back ids be inserted that no other process can have."""
        numbers = [self._number_of(each, using) for each in lost]
        sure = sure_numbers(counter, set(numbers))
        for each, number in zip(lost, numbers, strict=True):
            if number not in sure:
                raise HiLoError(
                    f"The transaction that gave {self.value_of(each)!r} to a "
                    f"{each._meta.label} was rolled back, and another process may have "
                    f"the id now, so the object is not saved. Create a new object, and "
                    f"new ones in place of those that refer to it. If none does, set "
                    f"{self.attname} = None."
                )
        for each, number in zip(lost, numbers, strict=True):
            mark = sure[number]
            note = None if mark is None else Note(using, mark, number)
            is_late = vars(each._state)[self.name][3]
            self.set_ids([each], [self.value_of(each)], using, [note], is_late=is_late)

    def _number_of(self, instance: models.Model, using: str) -> int:
        """Return the number of an id, 0 if it cannot be told."""
        note, value = self.note_of(instance), self.value_of(instance)
        known = note.number if note else None
        return known or self.number_in(value, using) or 0

    def refuse_update(
        self, instance: models.Model, using: str, names: Iterable[str] | None
    ) -> None:
        is_meant = names is None or self.field.name in names or self.attname in names
        if (is_meant or self.is_key) and self.is_rolled_back(instance, using):
            raise HiLoError(
                f"The row of {instance._meta.label} {self.value_of(instance)!r} was "
                f"rolled back, and another row may have this id now. Call save() "
                f"without arguments first."
            )


@lru_cache(1_000)
def _inserted(model: type[models.Model]) -> frozenset[str]:
    """Return the attributes that an INSERT of a model's object reads."""
    return frozenset(f.attname for f in model._meta.concrete_fields if not f.generated)


# No rollback can take back such numbers.
_LASTING: Iterable[Note | None] = repeat(None)


def notes_of(slices: Sequence[Slice], using: str) -> Iterable[Note | None]:
    """Return a note for each id of the slices, or None without end if all last."""
    if slices[0].mark is None:
        return _LASTING
    if len(slices) == 1:
        return repeat(Note(using, slices[0].mark))
    notes = [(Note(using, each.mark), each.high - each.low + 1) for each in slices]
    return chain.from_iterable(repeat(*each) for each in notes)
