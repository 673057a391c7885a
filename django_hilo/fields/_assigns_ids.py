"""Fields that give an object its id before the row is inserted."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, repeat
from typing import Any

from django.core import checks
from django.db import connections, models, router
from django.db.models import Value

from django_hilo._allocation.allocate import allocate, allocate_one
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.known_targets import known_target
from django_hilo._allocation.target import has_models, ids_of
from django_hilo.exceptions import HiLoError
from django_hilo.fields._collection_names import (
    collection_of_links,
    default_collection,
)
from django_hilo.fields._doubtful_ids import MakesSure
from django_hilo.fields._explicit_ids import ReadsExplicitIds
from django_hilo.fields._notes import GIVEN, NOTE, Instances, Note, lasting_note
from django_hilo.fields._options import WritesOptions
from django_hilo.fields.saving import wrap_saves

Block = AbstractContextManager[None]
# By field: the objects, by identity, whose rows may have other ids.
Unsure = dict[Any, set[int]]


class AssignsIds(MakesSure, ReadsExplicitIds, WritesOptions):
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
            if len(connections.settings) > 1 and not self.is_gapless:
                return _PlainlyInserted(model_instance, self)
        return getattr(model_instance, self.attname)

    def correct(self, using: str, instance: models.Model) -> None:
        """Refuse or replace an id that is not from the counter of rows on ``using``."""
        raise HiLoError(
            f"bulk_create() of {instance._meta.label} on {using!r} has taken ids from "
            f"the counter of another database, because its manager is not a "
            f"HiLoManager (django_hilo.W107). Set objects = HiLoManager(), or base the "
            f"manager on HiLoQuerySet."
        )

    def _alias_of_plain_bulk(self, instance: models.Model) -> str:
        # A guess, without the hints of its queryset: see `_PlainlyInserted`.
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
        self, instances: Instances, using: str, blocks: list[Block] | None = None
    ) -> dict[str, int]:
        """Give ids to the instances that have none, with one reservation at most.

        Instances whose ids rows of others may have keep them, or get other ones. Adds
        the block to insert in, where gapless ids are given, to ``blocks``. Returns the
        explicit ids with their numbers; raises `HiLoError` for one that is absurd.
        """
        missing, others = self.sort_out(instances, using)
        found: dict[str, int] = {}
        if others:
            self.make_sure(others, using)
            found = self.check_explicit(others, using)
        if found and missing:
            self.avoid(found, using)
        if missing:
            self.give(missing, using)
        if others:
            self.answer(others, found, using, blocks)
        return found

    def answer(
        self,
        others: list[models.Model],
        found: dict[str, int],
        using: str,
        blocks: list[Block] | None,
    ) -> None:
        """Give ids to those of the others whose ids are RavenDB's requests for one."""

    def assign_on_conflict(
        self, instances: Instances, using: str, blocks: list[Block], unsure: Unsure
    ) -> dict[str, int]:
        """Give ids for rows that are ignored or updated if they exist.

        Notes whom it gave one, for a row that exists keeps its own.
        """
        if any(self.needs_gapless(each) for each in instances):
            raise ValueError(
                f"{self} assigns gapless ids, and a row that is ignored or updated on "
                f"conflict would leave a gap: omit ignore_conflicts and "
                f"update_conflicts, or set the ids."
            )
        missing, _ = self.sort_out(instances, using)
        if missing:
            unsure[self] = set(map(id, missing))
        return self.assign_missing(instances, using, blocks)

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
        self, instances: Instances, ids: Sequence[Any], notes: Iterable[Note]
    ) -> None:
        longest = "" if self.max_length is None else max(ids, key=len)
        if longest and len(longest) > self.max_length:
            raise HiLoError(
                f"The id {longest!r} has {len(longest)} characters, but {self} allows "
                f"{self.max_length}. Raise max_length and migrate."
            )
        attname, is_key = self.attname, self.primary_key or self.is_key
        given, name = GIVEN + attname, NOTE + attname
        for instance, id, note in zip(instances, ids, notes):  # noqa: B905 - one note may be for all
            state = instance._state
            setattr(instance, attname, id)
            setattr(state, given, id)
            setattr(state, name, note)
            if is_key:
                # A copy, made by setting the key to None.
                state.adding = True


class _PlainlyInserted(Value):
    """An id that a plain ``bulk_create()`` inserts; only the INSERT knows the database.

    A related manager chooses it by its instance, for example.
    """

    def __init__(self, instance: models.Model, field: Any) -> None:
        super().__init__(None, output_field=field)
        self._instance = instance

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        field: Any = self.output_field
        own, alias = field.assigned_for(self._instance), connection.alias
        if own and field.target(own).key != field.target(alias).key:
            field.correct(alias, self._instance)
        self.value = field.value_of(self._instance)
        return super().as_sql(compiler, connection)


def notes_of(slices: Sequence[Slice], using: str) -> Iterable[Note]:
    """Return a note for each id of the slices, or one without end for all of them."""
    if not slices or slices[0].mark is None:
        return repeat(lasting_note(using))
    if len(slices) == 1:
        return repeat(Note(using, slices[0].mark))
    notes = [(Note(using, each.mark), each.high - each.low + 1) for each in slices]
    return chain.from_iterable(repeat(*each) for each in notes)
