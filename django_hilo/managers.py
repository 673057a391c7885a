from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from typing import Any, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections, models
from django.db.models.manager import ManagerDescriptor

from django_hilo import generator
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.fields.base import GivesIds
from django_hilo.fields.bucket import with_buckets
from django_hilo.freshness import watched, without_fresh
from django_hilo.generator import next_id
from django_hilo.identifiers import check_anchor
from django_hilo.inheritance import pass_keys_down
from django_hilo.pipelines import AHEAD, ROWS, may_pipeline, pipelined
from django_hilo.sharding.placement import is_sharded, known, place, split, together
from django_hilo.sharding.router import shard_router
from django_hilo.sharding.shards import shard_of
from django_hilo.targets import CounterField, Unplaced, field_of

Model = TypeVar("Model", bound=models.Model)


class HiLoQuerySet(models.QuerySet[Model]):
    """Gives ids on the database that its rows are written to."""

    def next_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id of the model; ``anchor`` is an id, an object or a text."""
        return generator.next_id(
            self.model,
            self._write_alias(),
            anchor=None if anchor is None else _anchor_text(anchor),
        )

    async def anext_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id, as `next_id`."""
        return await generator.anext_id(
            self.model,
            self._write_alias(),
            anchor=None if anchor is None else _anchor_text(anchor),
        )

    def next_ids(self, n: int) -> list[str]:
        """Return the next ``n`` ids of the model, for one reservation at most."""
        return generator.next_ids(self.model, n, self._write_alias())

    async def anext_ids(self, n: int) -> list[str]:
        """Return the next ``n`` ids, as `next_ids`."""
        return await generator.anext_ids(self.model, n, self._write_alias())

    def assign_ids(self, objects: Iterable[Model]) -> list[Model]:
        """Give ids to the objects that have none, and return all of them as a list.

        Takes one reservation at most and leaves the objects' table alone, so that a
        whole graph can have its ids before the first insert. Gapless ids it gives only
        inside a transaction, else it raises `HiLoError`.
        """
        objects = list(objects)
        using = self._write_alias()
        for field in _id_fields(self.model):
            if isinstance(field, CounterField):
                missing, explicit = without_fresh(objects, field, using)
                field.check_explicit(explicit, using)
                field.expect_explicit(explicit, using)
                field.assign_missing(missing + explicit, using)
            elif field.is_key:
                field.assign_missing(objects, using)
        if self.model._meta.parents:
            for instance in objects:
                pass_keys_down(instance, self.model)
        return objects

    async def aassign_ids(self, objects: Iterable[Model]) -> list[Model]:
        """Give ids, as `assign_ids`."""
        return await sync_to_async(self.assign_ids)(objects)

    def anchored_to(self, anchor: str | models.Model) -> Self:
        """Return the objects whose id has this anchor: an id, an object or a text.

        Not those that are anchored to such an object in turn.
        """
        name = anchored_field(self.model).name
        return self.filter(**{f"{name}__anchor": _anchor_text(anchor)})

    def shard(self, id: str | models.Model) -> Self:
        """Return the rows on the shard of an id or object (``HILO["SHARDS"]``)."""
        return self.using(shard_of(_anchor_text(id)))

    def create(self, **kwargs: Any) -> Model:
        if shard_router() is None or not isinstance(self._write_alias(), Unplaced):
            return super().create(**kwargs)
        created = self.model(**kwargs)
        created.save(force_insert=True)
        return created

    def get_or_create(self, defaults: Any = None, **kwargs: Any) -> tuple[Model, bool]:
        placed = self._placed_by(kwargs)
        return super(HiLoQuerySet, placed).get_or_create(defaults, **kwargs)

    def update_or_create(
        self, defaults: Any = None, create_defaults: Any = None, **kwargs: Any
    ) -> tuple[Model, bool]:
        placed = self._placed_by(kwargs)
        return super(HiLoQuerySet, placed).update_or_create(
            defaults, create_defaults, **kwargs
        )

    def bulk_create(
        self,
        objs: Iterable[Model],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[Model]:
        """Insert the objects, each on the shard of its id where the model has shards.

        Outside of a transaction of yours, what one shard refuses no other keeps; but
        their commits come one by one. A transaction covers its own database only.
        Raises ValueError where objects need gapless ids and conflicts are passed over.
        """
        objects = list(objs)
        using = self._write_alias()
        fields = _id_fields(self.model)
        if update_fields is not None:
            # What a conflict writes of a source, it writes of the bucket.
            update_fields = with_buckets(self.model, update_fields)
        with ExitStack() as stack:
            for field in fields:
                if ignore_conflicts or update_conflicts:
                    _refuse_gaps(field, objects)
                    stack.enter_context(field.conflicting(objects, using))
                missing, explicit = without_fresh(objects, field, using)
                field.check_explicit(explicit, using)
                field.expect_explicit(explicit, using)
                # A gapless id that its rollback gave back may count as fresh.
                asking = objects if field.gives_gapless else missing + explicit
                stack.enter_context(field.inserting(asking, using))
            if self.model._meta.parents:
                for instance in objects:
                    pass_keys_down(instance, self.model)
            stack.enter_context(watched(objects))
            groups = {using: objects}
            if is_sharded(self.model):
                groups = split(objects, using) or groups
            if len(groups) > 1:
                stack.enter_context(together(groups))
            for alias, group in groups.items():
                placed = self.using(alias)
                super(HiLoQuerySet, placed).bulk_create(
                    group,
                    batch_size,
                    ignore_conflicts,
                    update_conflicts,
                    update_fields,
                    unique_fields,
                )
                for field in fields:
                    field.observe_inserted(group, alias)
        return objects

    def _batched_insert(
        self, objs: Any, fields: Any, batch_size: int | None, **options: Any
    ) -> Any:
        # Django's own, of the rows of a bulk_create().
        inserted: Any = super()
        connection = connections[self.db]
        size = batch_size or ROWS
        if (
            len(objs) <= size
            or options.get("on_conflict") is not None
            or self._asked(self.model._meta.db_returning_fields, fields, objs)
            or not may_pipeline(connection, fields)
        ):
            return inserted._batched_insert(objs, fields, batch_size, **options)
        with pipelined(connection) as pipeline:
            for first in range(0, len(objs), size * AHEAD):
                some = objs[first : first + size * AHEAD]
                inserted._batched_insert(some, fields, size, **options)
                pipeline.sync()
        return []

    def _insert(
        self, objs: Any, fields: Any, returning_fields: Any = None, **options: Any
    ) -> Any:
        # Django's own, of one statement.
        inserted: Any = super()
        if options.get("on_conflict") is None:
            returning_fields = self._asked(returning_fields, fields, objs)
        return inserted._insert(objs, fields, returning_fields, **options)

    def _asked(self, returning: Any, written: Any, objects: Any) -> Any:
        """Return what an INSERT is asked to give back."""
        key = self.model._meta.pk
        return (
            key.not_given(returning, written, objects)
            if isinstance(key, GivesIds)
            else returning
        )

    # Saves reach it by the managers that Django makes of this class.
    _insert.alters_data = True  # type: ignore[attr-defined]
    _insert.queryset_only = False  # type: ignore[attr-defined]

    def bulk_update(
        self,
        objs: Iterable[Model],
        fields: Iterable[str],
        batch_size: int | None = None,
    ) -> int:
        """Write the fields of the objects, and the buckets of those among them.

        Raises `ShardError` for an object of another shard than the query's.
        """
        objects = list(objs)
        self._for_write = True
        using = self.db
        for instance in objects:
            place(instance, using)
        names = with_buckets(self.model, fields)
        return super().bulk_update(objects, names, batch_size)

    @property
    def db(self) -> str:
        """The database of the query; raises `ShardError` where it is not known."""
        given: Any = vars(self)["_db"]
        if given and type(given) is str:  # asked for each object of a bulk_create()
            return given
        using = super().db
        if not isinstance(using, Unplaced) or self.query.is_empty():
            return using
        return known(self.query, using)

    def _placed_by(self, lookups: dict[str, Any]) -> Self:
        if not isinstance(self._write_alias(), Unplaced):
            return self
        return self.using(self.filter(**lookups).db)

    def _write_alias(self) -> str:
        self._for_write = True
        return super().db


_Manager = models.Manager.from_queryset(HiLoQuerySet)


class HiLoManager(_Manager[Model]):
    """The manager of models with a `HiLoField`, with the methods of `HiLoQuerySet`.

    Data migrations have it too, so that their ``bulk_create()`` takes ids on the right
    database.
    """

    use_in_migrations = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        manager: Any = cls
        queryset = manager._queryset_class
        is_plain = (
            manager.get_queryset is HiLoManager.get_queryset
            and queryset.next_id is HiLoQuerySet.next_id
            and queryset._write_alias is HiLoQuerySet._write_alias
        )
        if not is_plain and manager.next_id is HiLoManager.next_id:
            manager.next_id = _next_id_of_queryset

    def contribute_to_class(self, cls: type[models.Model], name: str) -> None:
        super().contribute_to_class(cls, name)
        setattr(cls, name, _ShortDescriptor(self))

    def next_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id of the model; ``anchor`` is an id, an object or a text."""
        manager: Any = self
        if anchor is not None or manager._db or manager._hints:
            return _next_id_of_queryset(manager, anchor)
        return next_id(manager.model)


class _ShortDescriptor(ManagerDescriptor):
    """Django's, which spends more time on a manager than that on an id."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        descriptor: Any = self
        if instance is None:
            options = cls._meta
            if not (options.abstract or options.swappable):
                return options.managers_map[descriptor.manager.name]
        return super().__get__(instance, cls)


def _next_id_of_queryset(manager: Any, anchor: str | models.Model | None = None) -> str:
    id: str = manager.get_queryset().next_id(anchor)
    return id


def _id_fields(model: type[models.Model]) -> list[GivesIds]:
    found = [
        field
        for field in model._meta.fields
        if isinstance(field, GivesIds) and not field.is_copy
    ]
    # Gapless ones last: others wait for their counters until the commit.
    return sorted(found, key=lambda field: not isinstance(field, CounterField))


def _refuse_gaps(field: GivesIds, objects: Iterable[models.Model]) -> None:
    if any(field.needs_gapless(instance) for instance in objects):
        raise ValueError(
            f"{field} gives gapless ids, and a row that is ignored or updated on "
            f"conflict would leave a gap: insert without ignore_conflicts and "
            f"update_conflicts, or set the ids."
        )


def anchored_field(model: type[models.Model]) -> HiLoField:
    """Return the field whose ids have anchors, or else that of the key."""
    anchored = [
        field
        for field in _id_fields(model)
        if isinstance(field, HiLoField) and field.anchor is not None
    ]
    if len(anchored) == 1:
        return anchored[0]
    found: HiLoField = field_of(model)
    return found


def _anchor_text(anchor: str | models.Model) -> str:
    if not isinstance(anchor, models.Model):
        return check_anchor(anchor)
    if anchor.pk is None:
        raise HiLoError(f"{anchor!r} is no anchor: it has no id yet (assign_ids()).")
    return str(anchor.pk)
