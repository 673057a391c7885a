from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import models

from django_hilo import generator
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.freshness import watched
from django_hilo.inheritance import pass_keys_down

Model = TypeVar("Model", bound=models.Model)


class HiLoQuerySet(models.QuerySet[Model]):
    """Gives ids on the database that its rows are written to."""

    def next_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id of the model; ``anchor`` is an id, an object or a text."""
        return generator.next_id(
            self.model, self._write_alias(), anchor=_anchor_text(anchor)
        )

    async def anext_id(self, anchor: str | models.Model | None = None) -> str:
        """Return the next id, as `next_id`."""
        return await generator.anext_id(
            self.model, self._write_alias(), anchor=_anchor_text(anchor)
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
        whole graph can have its ids before the first insert.
        """
        objects = list(objects)
        using = self._write_alias()
        for field in _hilo_fields(self.model):
            field.check_explicit(objects, using)
            field.expect_explicit(objects, using)
            field.assign_missing(objects, using)
        for instance in objects:
            pass_keys_down(instance, self.model)
        return objects

    async def aassign_ids(self, objects: Iterable[Model]) -> list[Model]:
        """Give ids, as `assign_ids`."""
        return await sync_to_async(self.assign_ids)(objects)

    def bulk_create(
        self, objs: Iterable[Model], *args: Any, **kwargs: Any
    ) -> list[Model]:
        objects = self.assign_ids(objs)
        using = self._write_alias()
        with watched(objects):
            created = super().bulk_create(objects, *args, **kwargs)
        for field in _hilo_fields(self.model):
            field.observe_inserted(objects, using)
        return created

    def _write_alias(self) -> str:
        self._for_write = True
        return self.db


_Manager = models.Manager.from_queryset(HiLoQuerySet)


class HiLoManager(_Manager[Model]):
    """The manager of models with a `HiLoField`."""

    # So that bulk_create() in data migrations takes ids on the right database too.
    use_in_migrations = True


def _hilo_fields(model: type[models.Model]) -> list[HiLoField]:
    return [field for field in model._meta.fields if isinstance(field, HiLoField)]


def _anchor_text(anchor: str | models.Model | None) -> str | None:
    if not isinstance(anchor, models.Model):
        return anchor
    if anchor.pk is None:
        raise HiLoError(f"{anchor!r} is no anchor: it has no id yet (assign_ids()).")
    return str(anchor.pk)
