"""Fields that give an object its id before the row is inserted."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from django.core import checks
from django.db import IntegrityError, models, router

from django_hilo._allocation.allocate import allocate, allocate_one
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.known_targets import known_target
from django_hilo._allocation.target import has_models, ids_of
from django_hilo.exceptions import HiLoError
from django_hilo.fields._collection_names import (
    collection_of_links,
    default_collection,
)
from django_hilo.fields._explicit_ids import ReadsExplicitIds
from django_hilo.fields._notes import GIVEN, Instances, Note
from django_hilo.fields._options import WritesOptions
from django_hilo.fields._rolled_back_ids import MakesSure
from django_hilo.fields._save import Before, Save
from django_hilo.fields.saving import wrap_saves


class AssignsIds(MakesSure, ReadsExplicitIds, WritesOptions):
    """The part of a field that gives an object its id before the row is inserted."""

    model: Any
    max_length: Any
    # Of each kind of fields.
    give: Any
    collection: str | None
    # Whether a history (django-simple-history) copied the field from another model:
    # then its values are ids of that model, and it gives none.
    is_copy = False

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        if self.collection is not None:
            return self.collection
        is_made = self.model._meta.auto_created
        name_of = collection_of_links if is_made else default_collection
        return name_of(self.model.__name__)

    def contribute_to_class(self, cls: Any, name: str, *args: Any, **kw: Any) -> None:
        owner = getattr(self, "model", None)
        # A model may add its own field again, and abstract models share theirs.
        if owner not in (None, cls) and not owner._meta.abstract:
            self.is_copy = all(each is not self for each in owner._meta.local_fields)
        field: Any = super()
        field.contribute_to_class(cls, name, *args, **kw)
        if not self.is_copy:
            wrap_saves(cls)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        # Here, because without the app none of its own checks is registered.
        field: Any = super()
        found: list[checks.CheckMessage] = field.check(**kwargs)
        if not has_models():
            hint = "Add 'django_hilo' to INSTALLED_APPS, and run migrate."
            text = f"A {type(self).__name__} needs the app django_hilo."
            id = "django_hilo.E114"
            found.append(checks.Error(text, hint=hint, obj=self, id=id))
        return found

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
            # The id stays an assigned one: the INSERT may be refused.
            found = self.assign_missing([model_instance], using)
            if found:
                self.raise_over(found, using)
        return getattr(model_instance, self.attname)

    def _alias_of_plain_bulk(self, instance: models.Model) -> str:
        # A guess, without the hints of its queryset: W107 warns of it.
        return router.db_for_write(type(instance))

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

    def assign_missing(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> dict[str, int]:
        """Give ids to the instances that have none, with one reservation at most.

        Returns the explicit ids with their numbers. Raises `HiLoError` for one that is
        absurd, and for a rolled-back id that another process may have.
        """
        missing, others = self.sort_out(instances, using)
        found: dict[str, int] = {}
        if others:
            self.make_sure(others, using)
            found = self.check_explicit(others, using)
        if found and missing:
            self.avoid(found, using)
        if missing:
            if save is not None:
                save.given.append(Before(self, missing))
            self.give(missing, using)
        if others:
            self.answer(others, found, using, save)
        return found

    def answer(
        self,
        others: list[models.Model],
        found: dict[str, int],
        using: str,
        save: Save | None,
    ) -> None:
        """Give ids to those of the others whose ids are RavenDB's requests for one."""

    def assign_on_conflict(
        self, instances: Instances, using: str, save: Save
    ) -> dict[str, int]:
        """Give ids for rows that are ignored or updated if they exist."""
        if any(self.needs_gapless(each) for each in instances):
            raise ValueError(
                f"{self} assigns gapless ids, and a row that is ignored or updated on "
                f"conflict would leave a gap: omit ignore_conflicts and "
                f"update_conflicts, or set the ids."
            )
        return self.assign_missing(instances, using, save)

    def note_refused(
        self, instances: Instances, error: IntegrityError, using: str
    ) -> None:
        """Drop a range if a row of others has one of its numbers."""

    def next_ids(self, n: int, using: str) -> tuple[list[Any], list[Slice]]:
        """Return the next ids of the field's counter, for one reservation at most.

        With the slices that their numbers come from; none if no rollback can take back
        the number of a single one.
        """
        field: Any = self
        known = known_target(field, using)
        if n == 1:
            id, slices = allocate_one(known)
            return [id], slices
        slices = allocate(known.target, n)
        return ids_of(known.target, slices), slices

    def assign(
        self,
        instances: Instances,
        ids: Sequence[Any],
        using: str,
        notes: Iterable[Note | None],
    ) -> None:
        longest = "" if self.max_length is None else max(ids, key=len)
        if longest and len(longest) > self.max_length:
            raise HiLoError(
                f"The id {longest!r} has {len(longest)} characters, but {self} allows "
                f"{self.max_length}. Raise max_length and migrate."
            )
        attname, is_key = self.attname, self.primary_key or self.is_key
        name = GIVEN + attname
        for instance, id, note in zip(instances, ids, notes):  # noqa: B905 - one note may be for all
            state = instance._state
            setattr(instance, attname, id)
            setattr(state, name, (id, using, note))
            if is_key:
                # A copy, made by setting the key to None.
                state.adding = True


def notes_of(slices: Sequence[Slice], using: str) -> Iterable[Note | None]:
    """Return a note for each id of the slices, or None without end if all last."""
    if not slices or slices[0].mark is None:
        return repeat(None)
    if len(slices) == 1:
        return repeat(Note(using, slices[0].mark))
    notes = [(Note(using, each.mark), each.high - each.low + 1) for each in slices]
    return chain.from_iterable(repeat(*each) for each in notes)
