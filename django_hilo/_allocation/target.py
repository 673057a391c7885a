"""Find the counter of a collection, model or field, and the look of its ids."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeGuard

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models, router

from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.pool import CounterKey
from django_hilo._database.identity import database_key
from django_hilo.conf import settings
from django_hilo.counters.own import OwnCounter
from django_hilo.counters.ranges import Reservation
from django_hilo.counters.source import Source
from django_hilo.identifiers import IdFormat, check_collection, check_separator


class CounterField(Protocol):
    """A field whose values come from a counter."""

    model: Any
    # Whether its values are the numbers themselves.
    is_integer: bool
    # Whether it is the copy of another model's field in a history of that model.
    is_copy: bool
    # Where its numbers come from; None: HILO["SOURCES"], or the counter of its kind.
    source: Source | None

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""

    def counter_of(self, using: str) -> tuple[str, Source]:
        """Return the counter of rows on ``using``, after the alias that has it."""


def is_counter_field(target: object) -> TypeGuard[CounterField]:
    """Whether something is a field whose values come from a counter."""
    return hasattr(target, "counter_of")


def counter_of_rows(collection: str, using: str) -> tuple[str, Source]:
    """Return the row that counts a collection's ids, after the alias that has it."""
    home = home_of(using)
    return home, OwnCounter(collection, settings.node_tag(home))


class Target(NamedTuple):
    """A counter and the look of its ids, found once and handed down."""

    # "" for a source alone, whose ids are numbers.
    collection: str
    # The alias of the database that has the counter.
    using: str
    source: Source
    # The counter's key in the pool of this process.
    key: CounterKey
    # Whether its ids are the numbers themselves.
    is_integer: bool
    field: CounterField | None
    # Digits of a number, with leading zeros; 0: as many as it has.
    width: int

    @classmethod
    def of(
        cls,
        collection: str,
        using: str,
        source: Source,
        field: CounterField | None = None,
        width: int = 0,
    ) -> Target:
        key = CounterKey(database_key(using), *source.key)
        is_integer = field.is_integer if field else not collection
        return cls(collection, using, source, key, is_integer, field, width)

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.collection or self.source.name

    @property
    def node_tag(self) -> str:
        """The tag of its ids, empty for none."""
        return self.source.node_tag

    def format_of(self, reservation: Reservation) -> IdFormat | None:
        """Return the format of the ids of a range, None if they are its numbers."""
        if self.is_integer:
            return None
        separator = check_separator(settings.SEPARATOR)
        tag = reservation.node_tag if settings.SHOW_NODE_TAG else ""
        parts = (self.collection, separator, reservation.server_prefix, tag)
        return IdFormat.of(*parts)._replace(width=self.width)

    @property
    def capacities(self) -> tuple[int, int]:
        """The minimum and the maximum capacity of a range."""
        least = getattr(self.field, "capacity", None) or settings.CAPACITY
        most = getattr(self.field, "max_capacity", None) or settings.MAX_CAPACITY
        return least, max(least, most)


def ids_of(target: Target, slices: Iterable[Slice]) -> list[Any]:
    """Return the ids of numbers that were taken."""
    ids: list[Any] = []
    for low, high, reservation, _ in slices:
        format = target.format_of(reservation)
        ids += format.texts(low, high) if format else range(low, high + 1)
    return ids


# A collection, a label such as "shop.Order", a model, an instance, a field or a source.
AnyTarget = str | type[models.Model] | models.Model | CounterField | Source | Target


def resolve(target: AnyTarget, using: str | None = None) -> Target:
    """Return the `Target` of a collection, label, model, instance, field or source.

    ``using`` is the database of the rows. ``None`` asks the routers where the model is
    written, and means "default" for a bare collection. Raises LookupError for an
    unknown label or a model without a HiLo field, and `InvalidDocumentId` for a
    collection outside the grammar.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, Source):
        return Target.of("", using or DEFAULT_DB_ALIAS, target)
    if isinstance(target, str) and "." not in target:
        return _of_collection(check_collection(target), using)
    if isinstance(target, str):
        try:
            target = apps.get_model(target)
        except ValueError as error:
            raise LookupError(
                f"{target!r} is not a model label such as 'shop.Order'."
            ) from error
    field = field_of(target)
    if using is None:
        # A child of a model with a HiLo key may have another database than its parent.
        if isinstance(target, models.Model):
            using = router.db_for_write(type(target), instance=target)
        else:
            model = target if isinstance(target, type) else field.model
            using = router.db_for_write(model)
    collection = check_collection(field.collection_name)
    source = field.source or named_source(collection)
    if source is None:
        using, source = field.counter_of(using)
    width = getattr(field, "width", None) or 0
    return Target.of(collection, using, source, field, width)


def _of_collection(collection: str, using: str | None) -> Target:
    fields = fields_of(collection)
    if fields and fields[0].is_integer:
        return resolve(fields[0], using)
    using = using or DEFAULT_DB_ALIAS
    source = named_source(collection)
    if source is not None:
        return Target.of(collection, using, source, fields[0] if fields else None)
    home, source = counter_of_rows(collection, using)
    return Target.of(collection, home, source)


def given_source(field: CounterField) -> Source | None:
    """Return the source that a field, or HILO["SOURCES"] for its collection, names."""
    return field.source or named_source(field.collection_name)


def named_source(collection: str) -> Source | None:
    """Return the source of a collection in HILO["SOURCES"], in upper or lower case."""
    sources: dict[str, Source] = settings.SOURCES
    for name, source in sources.items():
        if name.lower() == collection.lower():
            return source
    return None


def counter_fields() -> Iterator[Any]:
    """Yield the fields of all installed models whose values come from counters."""
    for model in apps.get_models(include_auto_created=True):
        if not model._meta.proxy:
            for field in model._meta.local_fields:
                if is_counter_field(field) and not field.is_copy:
                    yield field


def fields_of(collection: str) -> list[Any]:
    """Return the fields of a collection, in upper or lower case."""
    global _index
    installed = apps.get_models(include_auto_created=True)
    # Django keeps this list until the installed apps change.
    if installed is not _index[0]:
        found: dict[str, list[Any]] = {}
        for field in counter_fields():
            found.setdefault(field.collection_name.lower(), []).append(field)
        _index = (installed, found)
    return _index[1].get(collection.lower(), [])


_index: tuple[list[Any], dict[str, list[Any]]] = ([], {})


def field_of(target: type[models.Model] | models.Model | CounterField) -> Any:
    """Return the HiLo field of a model or an instance: the key, or the only one."""
    if is_counter_field(target):
        return target
    if not hasattr(target, "_meta"):
        raise LookupError(
            f"{target!r} is not a target: pass a collection, a label such as "
            f"'shop.Order', a model, an instance or a field."
        )
    meta = target._meta
    chosen = [field for field in meta.fields if is_counter_field(field)]
    if len(chosen) > 1:
        keys = meta.pk_fields
        chosen = [field for field in chosen if field in keys] or chosen
    if len(chosen) != 1:
        raise LookupError(
            f"{meta.label} has {len(chosen)} HiLo fields: pass a collection or a "
            f"field. Gapless numbers have their own functions, in django_hilo.counters."
        )
    return chosen[0]


def has_models() -> bool:
    """Whether the app is installed, also where tests narrow the registry of apps."""
    return "django_hilo.models" in sys.modules


def home_of(using: str) -> str:
    """Return the home database, which has the counters of rows saved to ``using``."""
    home = settings.DATABASE
    if home is not None:
        return home
    from django_hilo.models import HiLoDocument

    return routed(HiLoDocument, "db_for_write") or using


def routed(model: type[models.Model], method: str) -> str | None:
    """Return what the routers answer for a model to ``method``, if one of them does."""
    # One by one, since Django answers "default" for them.
    for database_router in router.routers:
        answer = getattr(database_router, method, None)
        chosen = answer(model) if answer else None
        if chosen:
            return str(chosen)
    return None
