"""The database that an object is written to, once it has its id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from django.db import connections, models, transaction

from django_hilo.exceptions import ShardError
from django_hilo.sharding.router import shard_router
from django_hilo.targets import Unplaced

Model = TypeVar("Model", bound=models.Model)


def is_sharded(model: type[models.Model]) -> bool:
    """Whether the rows of a model are spread over ``HILO["SHARDS"]``."""
    router = shard_router()
    return router is not None and router.spreads(model)


def place(instance: models.Model, using: str) -> str:
    """Return the database to save an object on; ``using`` where it is not sharded.

    Raises `ShardError` for an object that cannot be there.
    """
    router = shard_router()
    if router is None or not router.spreads(type(instance)):
        return using
    return router.place(instance, using)


def split(objects: Sequence[Model], using: str) -> dict[str, list[Model]]:
    """Return the objects by the database to insert them on; see `place`."""
    groups: dict[str, list[Model]] = {}
    for instance in objects:
        groups.setdefault(place(instance, using), []).append(instance)
    return groups


def refuse_sharded(model: type[models.Model]) -> None:
    """Raise `ShardError` where rows would all be inserted in one place."""
    if is_sharded(model):
        raise ShardError(
            f"The rows of {model._meta.label} are spread over shards, and this "
            f"bulk_create() would put all of them in one place. Use that of a "
            f"HiLoManager (or HiLoQuerySet)."
        )


@contextmanager
def together(aliases: Iterable[str]) -> Iterator[None]:
    """Keep what the block writes on several databases, or none of it.

    They commit one by one at its end, after each was asked what it would refuse then.
    """
    with ExitStack() as stack:
        outermost = []
        for alias in aliases:
            if not connections[alias].in_atomic_block:
                outermost.append(connections[alias])
            stack.enter_context(transaction.atomic(using=alias))
        yield
        for connection in outermost:
            if connection.features.can_defer_constraint_checks:
                connection.check_constraints()


def known(model: type[models.Model], using: str) -> str:
    """Return a database to query; raises `ShardError` where the shard is not known."""
    if isinstance(using, Unplaced):
        raise ShardError(
            f"The rows of {model._meta.label} are spread over shards. Name the one: "
            f"{model.__name__}.objects.shard(id), or .using(alias) for all that it "
            f"has."
        )
    return using
