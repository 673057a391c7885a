"""Managers and querysets that give ids on the database their rows are written to."""

from collections.abc import Collection, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import IntegrityError, models, router
from django.db.models.constants import OnConflict

from django_hilo import generator
from django_hilo._allocation.registry import field_of
from django_hilo.fields._anchors import anchor_text
from django_hilo.fields._ids import Save, ids_of, running
from django_hilo.fields.saving import pass_keys_down, with_buckets, without_known

__all__ = [
    "HiLoManager",
    "HiLoQuerySet",
]

Model = TypeVar("Model", bound=models.Model)


class HiLoQuerySet(models.QuerySet[Model]):
    """A queryset that gives ids on the database that its rows are written to."""

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
        known, label = ids_of(self.model), self.model._meta.label
        if not known:
            raise LookupError(f"{label} has no HiLo field.")
        for kind in kinds:
            if not issubclass(kind, self.model._meta.concrete_model or self.model):
                raise TypeError(f"Expected {label} objects, got {kind.__name__}.")
        for ids in known:
            if not ids.is_gapless or ids.is_key:
                ids.assign(objects, using)
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
        fields = [ids.field for ids in ids_of(self.model)]
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
        objects, using = list(objs), self._written_to()
        if update_fields is not None:
            update_fields = with_buckets(self.model, update_fields)
        # Routers may answer otherwise the next time.
        queryset = self.using(using) if router.routers else self
        has_conflicts = ignore_conflicts or update_conflicts
        save = Save(self.model, objects, using)
        for ids in save.ids:
            if not ids.field.primary_key:
                # The INSERT would load deferred ids, too.
                for each in objects:
                    getattr(each, ids.attname)
            save.explicit[ids] = (
                ids.assign_on_conflict(objects, save)
                if has_conflicts
                else ids.assign(objects, using, save)
            )

        def write() -> None:
            pass_keys_down(objects, self.model)
            try:
                super(HiLoQuerySet, queryset).bulk_create(
                    objects,
                    batch_size,
                    ignore_conflicts,
                    update_conflicts,
                    update_fields,
                    unique_fields,
                )
                for before, told, values in save.told:
                    before.replace(told, values)
            except IntegrityError as error:
                for ids in save.explicit if save.is_refused else ():
                    ids.refused(objects, error, using)
                raise
            finally:
                if has_conflicts:
                    # The rows that exist have ids of their own.
                    save.take_off()
            for ids, found in save.explicit.items():
                ids.inserted(objects)
                if found:
                    ids.raise_over(found, using)

        save.run(write)
        return objects

    def _insert(
        self,
        objs: list[Model],
        fields: Any,
        returning_fields: Any = None,
        **options: Any,
    ) -> Any:
        insert: Any = super()._insert  # type: ignore[misc] # the stubs lack it
        conflict, save = options.get("on_conflict"), running.of(objs[0])
        if conflict is None:
            returning_fields = without_known(returning_fields, objs)
        # Some databases tell the ids of rows that exist.
        is_told = conflict is OnConflict.UPDATE and returning_fields is not None
        given = save.given if save and is_told else []
        asked = [each.ids.field for each in given]
        known = list(returning_fields or ())
        try:
            rows = insert(
                objs, fields, [*known, *asked] if asked else returning_fields, **options
            )
        except IntegrityError:
            if save:
                save.is_refused = True
            raise
        if not save or not asked:
            return rows
        for before, column in zip(given, count(len(known))):
            save.told.append((before, objs, [row[column] for row in rows]))
        return [row[: len(known)] for row in rows]

    def bulk_update(
        self,
        objs: Iterable[Model],
        fields: Iterable[str],
        batch_size: int | None = None,
    ) -> int:
        """Write the fields of the objects, and the buckets of sources among them."""
        objects, names = list(objs), with_buckets(self.model, fields)
        for ids in ids_of(self.model):
            for each in objects:
                ids.refuse_update(each, self._written_to(), names)
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
    """The manager of models with HiLo ids, with the methods of `HiLoQuerySet`.

    Data migrations have it too, so that their ``bulk_create()`` takes ids on the right
    database.
    """

    use_in_migrations = True
