"""The database that an object is written to, once it has its id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from django.db import connections, models, transaction
from django.db.models.sql.where import AND

from django_hilo._allocation.target import Unplaced
from django_hilo.exceptions import ShardError
from django_hilo.sharding.router import shard_router
from django_hilo.sharding.shards import shard_of

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


def known(query: Any, using: str) -> str:
    """Return the database to run a query on, as it names the shard or one id.

    Raises `ShardError` where neither is said.
    """
    if not isinstance(using, Unplaced):
        return using
    # The parts of a union have conditions of their own.
    asked = None if query.combinator else _id_in(query.where, query)
    if asked is not None:
        return shard_of(asked)
    model = query.model
    raise ShardError(
        f"The rows of {model._meta.label} are spread over shards. Name the one: "
        f"{model.__name__}.objects.shard(id), or .using(alias) for all that it "
        f"has; or ask for one id: .get(pk=id)."
    )


def _id_in(where: Any, query: Any) -> str | None:
    """Return an id that all rows of a query have, where its conditions say so."""
    if where.negated or where.connector != AND:
        return None
    for each in where.children:
        if hasattr(each, "children"):
            found = _id_in(each, query)
            if found is not None:
                return found
        elif getattr(each, "lookup_name", None) == "exact":
            left = each.lhs
            of_key = getattr(left, "target", None) == query.model._meta.pk
            if of_key and left.alias == query.base_table and isinstance(each.rhs, str):
                return each.rhs
    return None
