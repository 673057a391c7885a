"""Managers and querysets that give ids on the database their rows are written to."""

from collections.abc import Collection, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import IntegrityError, models
from django.db.models.constants import OnConflict

from django_hilo import generator
from django_hilo._allocation.target import field_of
from django_hilo.fields._anchors import anchor_text
from django_hilo.fields._notes import id_fields, set_handled
from django_hilo.fields._save import Save
from django_hilo.fields.saving import pass_keys_down, with_buckets, without_known

__all__ = [
    "HiLoManager",
    "HiLoQuerySet",
]

Model = TypeVar("Model", bound=models.Model)


class HiLoQuerySet(models.QuerySet[Model]):
    """A queryset that gives ids on the database that its rows are written to."""

    # Of the copy that a bulk_create() uses; whether an INSERT was refused.
    _save = Save()
    _is_refused = False

    def next_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id of the model; ``anchor`` is an id, an object or a text."""
        text = None if anchor is None else anchor_text(anchor)
        return generator.next_id(self.model, self._written_to(), anchor=text)

    async def anext_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id, as `next_id`."""
        text = None if anchor is None else anchor_text(anchor)
        return await generator.anext_id(self.model, self._written_to(), anchor=text)

    def next_ids(self, n: int) -> list[str]:
        """Return the next ``n`` ids of the model, with one reservation at most."""
        return generator.next_ids(self.model, n, self._written_to())

    async def anext_ids(self, n: int) -> list[str]:
        """Return the next ``n`` ids, as `next_ids`."""
        return await generator.anext_ids(self.model, n, self._written_to())

    def assign_ids(self, objects: Iterable[Model]) -> list[Model]:
        """Give ids to the objects that have none, and return all of them as a list.

        Takes one reservation at most and does not touch the objects' table, so a whole
        graph can have its ids before the first insert. Raises `HiLoError` for gapless
        ids outside of a transaction, TypeError for objects of another model.
        """
        objects = list(objects)
        using, kinds = self._written_to(), set(map(type, objects))
        fields, label = id_fields(self.model), self.model._meta.label
        if not fields:
            raise LookupError(f"{label} has no HiLo field.")
        for kind in kinds:
            if not issubclass(kind, self.model._meta.concrete_model or self.model):
                raise TypeError(f"Expected {label} objects, got {kind.__name__}.")
        for field in fields:
            if not field.is_gapless or field.is_key:
                field.assign_missing(objects, using)
        for kind in kinds:
            pass_keys_down([each for each in objects if type(each) is kind], kind)
        return objects

    async def aassign_ids(self, objects: Iterable[Model]) -> list[Model]:
        """Give ids, as `assign_ids`."""
        return await sync_to_async(self.assign_ids)(objects)

    def anchored_to(self, anchor: str | models.Model) -> Self:
        """Return the objects whose id has this anchor: an id, an object or a text.

        Objects that are anchored to one of these objects are not among them. The id is
        that of the only field with an anchor, else the model's.
        """
        fields: list[Any] = id_fields(self.model)
        anchored = [each for each in fields if getattr(each, "anchor", None)]
        field = anchored[0] if len(anchored) == 1 else field_of(self.model)
        return self.filter(**{f"{field.name}__anchor": anchor_text(anchor)})

    def bulk_create(
        self,
        objs: Iterable[Model],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[Model]:
        """Insert the objects, with ids from this queryset's database.

        Raises ValueError if objects need gapless ids and conflicts are ignored or
        updated.
        """
        objects = list(objs)
        using = self._written_to()
        fields = id_fields(self.model)
        if update_fields is not None:
            update_fields = with_buckets(self.model, update_fields)
        explicit: dict[Any, dict[str, int]] = {}
        save, has_conflicts = Save(), ignore_conflicts or update_conflicts
        for field in fields:
            if not field.primary_key:
                # The INSERT would load deferred ids, too.
                for each in objects:
                    getattr(each, field.attname)
            may_exist = field.assign_on_conflict
            assign = may_exist if has_conflicts else field.assign_missing
            explicit[field] = assign(objects, using, save)
        with save.around():
            pass_keys_down(objects, self.model)
            set_handled(objects, True)
            # A copy: routers may answer otherwise the next time, threads may share this
            # queryset, and it may live on.
            queryset = self.using(using)
            queryset._save = save
            try:
                super(HiLoQuerySet, queryset).bulk_create(
                    objects,
                    batch_size,
                    ignore_conflicts,
                    update_conflicts,
                    update_fields,
                    unique_fields,
                )
                for before, told, ids in save.told:
                    before.replace(told, ids)
            except IntegrityError as error:
                if queryset._is_refused:
                    for field in fields:
                        field.note_refused(objects, error, using)
                    save.take_off()
                raise
            finally:
                set_handled(objects, False)
                if has_conflicts:
                    # The rows that exist have ids of their own.
                    save.take_off()
            for field, found in explicit.items():
                field.note_inserted(objects)
                if found:
                    field.raise_over(found, using)
        return objects

    def _insert(
        self,
        objs: list[Model],
        fields: Any,
        returning_fields: Any = None,
        **options: Any,
    ) -> Any:
        insert: Any = super()._insert  # type: ignore[misc] # the stubs lack it
        conflict, given = options.get("on_conflict"), self._save.given
        if conflict is None:
            returning_fields = without_known(returning_fields, objs)
        # Some databases tell the ids of rows that exist.
        is_told = conflict is OnConflict.UPDATE and returning_fields is not None
        asked = [each.field for each in given] if is_told else []
        known = list(returning_fields or ())
        try:
            rows = insert(
                objs, fields, [*known, *asked] if asked else returning_fields, **options
            )
        except IntegrityError:
            self._is_refused = True
            raise
        if not asked:
            return rows
        for before, column in zip(given, count(len(known))):
            ids = [row[column] for row in rows]
            self._save.told.append((before, objs, ids))
        return [row[: len(known)] for row in rows]

    def bulk_update(
        self,
        objs: Iterable[Model],
        fields: Iterable[str],
        batch_size: int | None = None,
    ) -> int:
        """Write the fields of the objects, and the buckets of sources among them."""
        objects, names = list(objs), with_buckets(self.model, fields)
        for field in id_fields(self.model):
            for each in objects:
                field.refuse_update(each, self._written_to(), names)
        return super().bulk_update(objects, names, batch_size)

    def _written_to(self) -> str:
        self._for_write = True
        return self.db


if TYPE_CHECKING:
    # Type checkers other than mypy with its plugin see no method of from_queryset().
    class _Manager(models.Manager[Model]):
        def get_queryset(self) -> HiLoQuerySet[Model]: ...
        def all(self) -> HiLoQuerySet[Model]: ...
        def filter(self, *args: Any, **kwargs: Any) -> HiLoQuerySet[Model]: ...
        def exclude(self, *args: Any, **kwargs: Any) -> HiLoQuerySet[Model]: ...
        def using(self, alias: str | None) -> HiLoQuerySet[Model]: ...
        def next_id(self, anchor: str | models.Model | None = None) -> str: ...
        async def anext_id(self, anchor: str | models.Model | None = None) -> str: ...
        def next_ids(self, n: int) -> list[str]: ...
        async def anext_ids(self, n: int) -> list[str]: ...
        def assign_ids(self, objects: Iterable[Model]) -> list[Model]: ...
        async def aassign_ids(self, objects: Iterable[Model]) -> list[Model]: ...
        def anchored_to(self, anchor: str | models.Model) -> HiLoQuerySet[Model]: ...

else:
    _Manager = models.Manager.from_queryset(HiLoQuerySet)


class HiLoManager(_Manager[Model]):
    """The manager of models with a `HiLoField`, with the methods of `HiLoQuerySet`.

    Data migrations have it too, so that their ``bulk_create()`` takes ids on the right
    database.
    """

    use_in_migrations = True
