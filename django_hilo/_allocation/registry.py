"""The fields whose values come from counters, and the sources that they name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

from django.apps import apps
from django.db import models, router

from django_hilo.conf import settings
from django_hilo.counters.own import OwnSource
from django_hilo.counters.source import Source
from django_hilo.identifiers import IdFormat, is_counter_name


class CounterField(Protocol):
    """A field whose values come from a counter."""

    model: Any
    # Whether its values are the numbers themselves.
    is_integer: bool
    # Whether it is the copy of another model's field in a history of that model.
    is_copy: bool
    # Where its numbers come from; None: HILO["SOURCES"], or the counter of its kind.
    source: Source | None
    # The paths that say of which series a number is; none: the field has one counter.
    per: Sequence[str]

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""

    def home_and_source(self, using: str) -> tuple[str, Source]:
        """Return the counter of rows on ``using``, after the alias that has it."""


class Series(NamedTuple):
    """One series of a field with ``per``, which has a counter of its own."""

    field: Any
    # Of its counter: the collection and the values of the paths.
    name: str
    # Of its ids.
    format: IdFormat


def is_counter_field(target: object) -> TypeGuard[CounterField]:
    """Whether something is a field whose values come from a counter."""
    return hasattr(target, "home_and_source")


def own_home_and_source(collection: str, using: str) -> tuple[str, Source]:
    """Return the row that counts a collection's ids, after the alias that has it."""
    home = home_of(using)
    return home, OwnSource(collection, settings.node_tag(home))


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
    """Yield the fields of all installed models that have one counter each."""
    for model in apps.get_models(include_auto_created=True):
        if not model._meta.proxy:
            for field in model._meta.local_fields:
                if is_counter_field(field) and not field.is_copy and not field.per:
                    yield field


def series_fields() -> Iterator[Any]:
    """Yield the fields of all installed models that have a counter for each series."""
    for model in apps.get_models():
        if not model._meta.proxy:
            for field in model._meta.local_fields:
                each: Any = field
                if getattr(each, "per", ()) and not each.is_copy:
                    yield each


def series_fields_of(name: str) -> list[Any]:
    """Return the fields that have a series whose counter may have this name."""
    found = list(series_fields()) if is_counter_name(name) else []
    return [each for each in found if name.startswith(starts_of_series(each))]


def starts_of_series(field: Any) -> tuple[str, ...]:
    """Return what the names of the counters of a field with ``per`` start with."""
    return tuple(f"{field.collection_name.lower()}{sign}" for sign in ".=")


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
