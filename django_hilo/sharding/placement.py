"""The database that an object is written to, once it has its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.db import models

from django_hilo.exceptions import ShardError
from django_hilo.sharding.router import shard_router
from django_hilo.targets import Unplaced

Model = TypeVar("Model", bound=models.Model)


def is_sharded(model: type[models.Model]) -> bool:
    """Whether the rows of a model are spread over ``HILO["SHARDS"]``."""
    router = shard_router()
    return router is not None and router.is_sharded(model)


def place(instance: models.Model, using: str) -> str:
    """Return the database to save an object on; ``using`` where it is not sharded.

    Raises `ShardError` for an object that cannot be there.
    """
    router = shard_router()
    if router is None or not router.is_sharded(type(instance)):
        return using
    return router.place(instance, using)


def split(objects: Sequence[Model], using: str) -> dict[str, list[Model]]:
    """Return the objects by the database to insert them on; see `place`."""
    groups: dict[str, list[Model]] = {}
    for instance in objects:
        groups.setdefault(place(instance, using), []).append(instance)
    return groups


def known(model: type[models.Model], using: str) -> str:
    """Return a database to query; raises `ShardError` where the shard is not known."""
    if isinstance(using, Unplaced):
        raise ShardError(
            f"The rows of {model._meta.label} are spread over shards. Name the one: "
            f"{model.__name__}.objects.shard(id), or .using(alias) for all that it "
            f"has."
        )
    return using
