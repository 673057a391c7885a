"""Fields that give an object its id before the row is inserted."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.apps import apps
from django.db import models, router

from django_hilo._allocation import explicit_ids
from django_hilo._allocation.allocate import allocate, allocate_one
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.known_targets import known_target
from django_hilo._allocation.target import Target, ids_of
from django_hilo._database.transaction import Mark
from django_hilo.exceptions import HiLoError
from django_hilo.fields._collection_names import default_collection
from django_hilo.fields._doubtful_ids import MakesSure
from django_hilo.fields._notes import ALIAS, ASSIGNED, NOTE, Instances, Note
from django_hilo.fields.saving import wrap_saves

Block = AbstractContextManager[None]
NOTHING: nullcontext[Any] = nullcontext()


class WritesOptions:
    """The part of a field that names its options, and a lasting path, in migrations."""

    # The default of each option; only other values are written.
    own_options: dict[str, Any]

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        field: Any = super()
        name, path, args, kwargs = field.deconstruct()
        for option, default in self.own_options.items():
            kwargs.pop(option, None)
            if getattr(self, option) != default:
                kwargs[option] = getattr(self, option)
        if path.startswith("django_hilo.fields."):
            # Migrations name this path, which must not change with our modules.
            path = f"django_hilo.fields.{path.rpartition('.')[2]}"
        return name, path, args, kwargs


# The number of an id, and the mark of the transaction that took it.
Marked = tuple[int, Mark]


class AssignsIds(MakesSure, WritesOptions):
    """The part of a field that gives an object its id before the row is inserted."""

    model: Any
    max_length: Any
    collection: str | None
    # Whether a history (django-simple-history) copied the field from another model:
    # then its values are ids of that model, and it gives none.
    is_copy = False

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        if self.collection is not None:
            return self.collection
        return default_collection(self.model.__name__)

    def contribute_to_class(self, cls: Any, name: str, *args: Any, **kw: Any) -> None:
        # Without the app an error at the start, not at the first save.
        if not apps.is_installed("django_hilo"):
            raise LookupError("Add 'django_hilo' to INSTALLED_APPS.")
        owner = getattr(self, "model", None)
        # A model may add its own field again, and abstract models share theirs.
        if owner not in (None, cls) and not owner._meta.abstract:
            self.is_copy = all(each is not self for each in owner._meta.local_fields)
        field: Any = super()
        field.contribute_to_class(cls, name, *args, **kw)
        if not self.is_copy:
            wrap_saves(cls)

    # These two give ids in the bulk_create() of a plain manager alone: in saves, and in
    # that of a HiLoManager, the id is there.

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        if not getattr(instance._state, "hilo_handled", False):
            self.assign_missing([instance], self._alias_of_plain_bulk(instance))
        return getattr(instance, self.attname)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        is_handled = getattr(model_instance._state, "hilo_handled", False)
        if add and not (is_handled or self.is_copy):
            using = self._alias_of_plain_bulk(model_instance)
            self.assign_missing([model_instance], using)
            # The id stays an assigned one: the INSERT may be refused.
            found = self.check_explicit([model_instance], using)
            if found:
                self.record(found, using)
        return getattr(model_instance, self.attname)

    def _alias_of_plain_bulk(self, instance: models.Model) -> str:
        return router.db_for_write(type(instance), instance=instance)

    @property
    def is_key(self) -> bool:
        """Whether the field is the model's primary key, or a part of it."""
        return self.primary_key or self in self.model._meta.pk_fields

    def needs_gapless(self, instance: models.Model) -> bool:
        """Whether the id that an instance needs is a gapless one."""
        return False

    def end_of(self, instance: models.Model) -> str:
        """Return what follows the number in the id of an instance."""
        return ""

    def sort_out(
        self, instances: Instances
    ) -> tuple[list[models.Model], list[models.Model]]:
        """Return the instances without an id, and those with a note, each once."""
        # By identity: an instance without a key cannot be hashed.
        missing: dict[int, models.Model] = {}
        noted: dict[int, models.Model] = {}
        name = NOTE + self.attname
        for each in instances:
            if self.is_missing(each):
                missing[id(each)] = each
            elif getattr(each._state, name, None) is not None:
                noted[id(each)] = each
        return list(missing.values()), list(noted.values())

    def inserting(self, instances: Instances, using: str) -> Block:
        """Give ids, gapless ones in the returned block, to insert the instances in."""
        self.assign_missing(instances, using)
        return NOTHING

    def conflicting(self, instances: Instances, using: str) -> Block:
        """Do as `inserting`, for rows that are ignored or updated if they exist."""
        if any(self.needs_gapless(each) for each in instances):
            raise ValueError(
                f"{self} gives gapless ids, and a row that is ignored or updated on "
                f"conflict would leave a gap: omit ignore_conflicts and "
                f"update_conflicts, or set the ids."
            )
        return self.inserting(instances, using)

    def assign_missing(self, instances: Instances, using: str) -> None:
        """Give ids to the instances that have none, and make sure of those in doubt."""
        raise NotImplementedError  # pragma: no cover - each kind has its own

    def next_ids(self, n: int, using: str) -> tuple[list[Any], Sequence[Marked]]:
        """Return the next ids of the field's counter, for one reservation at most.

        With their marks, if a rollback can take the numbers back.
        """
        field: Any = self
        known = known_target(field, using)
        if n == 1:
            id, slices = allocate_one(known)
            return [id], marked(slices) if slices else ()
        slices = allocate(known.target, n)
        return ids_of(known.target, slices), marked(slices)

    def assign(
        self,
        instances: Instances,
        ids: Sequence[Any],
        using: str,
        marks: Sequence[Marked] = (),
    ) -> None:
        """Set the ids for rows on ``using``, one for each instance."""
        longest = "" if self.max_length is None else max(ids, key=len)
        if longest and len(longest) > self.max_length:
            raise HiLoError(
                f"The id {longest!r} has {len(longest)} characters, but {self} allows "
                f"{self.max_length}. Raise max_length and migrate."
            )
        attname, is_key = self.attname, self.primary_key or self.is_key
        assigned, alias = ASSIGNED + attname, ALIAS + attname
        for instance, id in zip(instances, ids, strict=True):
            state = instance._state
            setattr(instance, attname, id)
            setattr(state, assigned, id)
            setattr(state, alias, using)
            if is_key:
                # A copy, made by setting the key to None.
                state.adding = True
        if marks:
            name = NOTE + attname
            for instance, id, of in zip(instances, ids, marks, strict=True):
                setattr(instance._state, name, Note(id, using, *of))

    # Explicit ids. Each is a text that messages show, with the number in it.

    def check_explicit(self, instances: Instances, using: str) -> dict[str, int]:
        """Return the explicit ids; raise `HiLoError` if a number is absurdly high."""
        found = self.explicit_ids(instances, using)
        if found:
            self.check_jump(found, using)
        return found

    def reserve_explicit(self, instances: Instances, using: str) -> None:
        """Check explicit ids, and keep the ids that are given now clear of them."""
        found = self.check_explicit(instances, using)
        if found:
            self.reserve(found, using)

    def record_inserted(self, instances: Instances, using: str) -> None:
        """Keep all later ids clear of explicit ids that were inserted."""
        found = self.explicit_ids(instances, using)
        if found:
            self.record(found, using)
        for each in instances:
            self.note_inserted(each, using)

    def note_explicit(self, value: Any) -> None:
        """Note an explicit id, before its row is inserted."""

    def explicit_values(
        self, instances: Instances, using: str
    ) -> Iterator[tuple[Any, str | None]]:
        """Yield each id not assigned for rows on ``using``, and the alias it was for.

        An id that was taken back is not explicit: its number comes again.
        """
        for each in instances:
            alias = self.assigned_for(each)
            note = None if alias else self.note_of(each)
            if note is not None and not note.is_gapless:
                alias = note.using
            value = None if alias == using else self.value_of(each)
            if value not in (None, "") and not self.was_taken_back(each):
                if each._state.adding:
                    self.note_explicit(value)
                yield value, alias

    # Those of a counter; gapless ids have others.

    def target(self, using: str) -> Target:
        """Return the counter of rows on ``using``."""
        field: Any = self
        return known_target(field, using).target

    def explicit_ids(self, instances: Instances, using: str) -> dict[str, int]:
        """Return the explicit ids that the field's own counter could give."""
        found: dict[str, int] = {}
        target: Target | None = None
        for value, alias in self.explicit_values(instances, using):
            target = target or self.target(using)
            # Not explicit if it was assigned for another alias with the same counter.
            if alias is None or self.target(alias).key != target.key:
                number = self.number_in(value, target, using)
                if number is not None:
                    found[str(value)] = number
        return found

    def number_in(self, value: Any, target: Target, using: str) -> int | None:
        """Return the number of an id that the counter could give, else None."""
        raise NotImplementedError  # pragma: no cover - each kind has its own

    def check_jump(self, ids: dict[str, int], using: str) -> None:
        """Raise `HiLoError` if one of the numbers is absurdly high."""
        highest = max(ids, key=lambda id: ids[id])
        explicit_ids.check_jump(self.target(using), ids[highest], highest)

    def reserve(self, ids: dict[str, int], using: str) -> None:
        """Give none of the numbers to the objects that are saved beside them."""
        explicit_ids.reserve_explicit(self.target(using), list(ids.values()))

    def record(self, ids: dict[str, int], using: str) -> None:
        """Raise the counter to the numbers of rows that were inserted."""
        explicit_ids.record_explicit(self.target(using), list(ids.values()), using)


def marked(slices: Sequence[Slice]) -> list[Marked]:
    """Return numbers with their marks; none, if no rollback can take them back."""
    if not slices or slices[0].mark is None:
        return []
    return [(n, each.mark) for each in slices for n in range(each.low, each.high + 1)]
