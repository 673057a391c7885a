"""What ids are asked for: a collection, its counter, and the bounds of its ranges."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models, router

from django_hilo.conf import settings
from django_hilo.connections import database_key
from django_hilo.identifiers import check_collection
from django_hilo.models import HiLoDocument
from django_hilo.pool import CounterKey


class Unplaced(str):
    """A home database, in place of the shard of objects that have no id yet."""

    __slots__ = ()


class CounterField:
    """The part of a field that says which counter its values come from."""

    capacity: int | None
    max_capacity: int | None

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        raise NotImplementedError  # pragma: no cover - fields of each kind have one


class Target(NamedTuple):
    """A counter, and how ids of it are made."""

    collection: str
    using: str
    node_tag: str
    field: CounterField | None = None
    # Digits of a number, with leading zeros; 0: as many as it has.
    width: int = 0

    @property
    def key(self) -> CounterKey:
        """The counter's key in the pool of this process."""
        database = database_key(self.using)
        return CounterKey(database, self.collection.lower(), self.node_tag)

    @property
    def capacities(self) -> tuple[int, int]:
        """The least and the most numbers in a range."""
        least = getattr(self.field, "capacity", None) or settings.CAPACITY
        most = getattr(self.field, "max_capacity", None) or settings.MAX_CAPACITY
        return least, max(least, most)


# A collection, a label such as "shop.Order", a model, an instance or a field.
AnyTarget = str | type[models.Model] | models.Model | CounterField | Target


def resolve(target: AnyTarget, using: str | None = None) -> Target:
    """Return the counter that a target stands for.

    ``using`` is the database of the rows; ``None`` asks the routers where the model is
    written, and takes "default" for a bare collection. Raises LookupError for an
    unknown label or a model without a HiLo field, `InvalidDocumentId` for a collection
    outside the grammar.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, str) and "." not in target:
        alias = home_of(using or DEFAULT_DB_ALIAS)
        return Target(check_collection(target), alias, settings.node_tag(alias))
    field = field_of(target)
    if using is None:
        hints = {"instance": target} if isinstance(target, models.Model) else {}
        using = router.db_for_write(field.model, **hints)
    alias = home_of(using)
    collection = check_collection(field.collection_name)
    width = getattr(field, "width", None) or 0
    return Target(collection, alias, settings.node_tag(alias), field, width)


def field_of(target: str | type[models.Model] | models.Model | CounterField) -> Any:
    """Return the HiLo field of a label, model or instance: the key, or the only one."""
    if isinstance(target, CounterField):
        return target
    model = _model_of(target) if isinstance(target, str) else target
    if not hasattr(model, "_meta"):
        raise LookupError(
            f"{target!r} is no target: name a collection, a label such as "
            f"'shop.Order', a model, an instance or a field."
        )
    fields = [field for field in model._meta.fields if isinstance(field, CounterField)]
    keys = [field for field in fields if field in model._meta.pk_fields]
    chosen = keys or fields
    if len(chosen) != 1:
        raise LookupError(
            f"{model._meta.label} has {len(chosen) or 'no'} fields with HiLo numbers; "
            f"name a collection, or a model with one."
        )
    return chosen[0]


def _model_of(label: str) -> type[models.Model]:
    try:
        return apps.get_model(label)
    except ValueError as error:
        raise LookupError(f"{label!r} is no label such as 'shop.Order'.") from error


def home_of(using: str) -> str:
    """Return the home database, which holds the counters of rows saved to ``using``.

    ``HILO["DATABASE"]``, or what a router answers for HiLoDocument, or ``using``.
    """
    home = settings.DATABASE
    if home is not None:
        return home
    return routed(HiLoDocument, "db_for_write") or using


def routed(model: type[models.Model], method: str) -> str | None:
    """Return what the routers answer for a model, None where all are silent.

    They are asked one by one: Django turns their silence into "default". ``method`` is
    "db_for_read" or "db_for_write".
    """
    for database_router in router.routers:
        answer = getattr(database_router, method, None)
        chosen = answer(model) if answer else None
        if chosen and not isinstance(chosen, Unplaced):
            return str(chosen)
    return None
