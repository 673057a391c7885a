"""System checks of the models together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks

from django_hilo._allocation.registry import CounterField, counter_fields, named_source
from django_hilo.checks.settings import are_sources
from django_hilo.conf import settings
from django_hilo.fields import HiLoField
from django_hilo.managers import HiLoQuerySet


def check_collections(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn if models that have nothing to do with each other share a counter."""
    texts = [field for field in counter_fields() if not field.is_integer]
    implicit = {
        str(field.collection_name).lower()
        for field in texts
        if getattr(field, "collection", None) is None
    }
    return [
        checks.Warning(
            f"{labels} share the collection {collection!r}, and thus one counter.",
            hint="Set collection= on their fields: a different one on each, or the "
            "same one on all if sharing is intended.",
            obj=model,
            id="django_hilo.W008",
        )
        for collection, labels, model in _shared(texts)
        if collection in implicit
    ]


def check_integers(**kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a collection of several integer keys, each of which counts for itself."""
    if not are_sources(settings.SOURCES):
        return []  # check_settings reports it
    fields = [f for f in counter_fields() if f.is_integer and f.source is None]
    return [
        checks.Error(
            f"{labels} share the collection {collection!r}, but each integer key has a "
            f"counter for its own table.",
            hint="Give each another collection; or, to share numbers, the same source, "
            "such as database.Sequence('numbers').",
            obj=model,
            id="django_hilo.E021",
        )
        for collection, labels, model in _shared(fields)
        if named_source(collection) is None
    ]


def _shared(fields: Iterable[CounterField]) -> Iterator[tuple[str, str, Any]]:
    """Yield collections of several models, with their labels and the first model."""
    found: dict[str, list[Any]] = defaultdict(list)
    for field in fields:
        found[str(field.collection_name).lower()].append(field.model)
    for collection, models in found.items():
        if len(models) > 1:
            yield collection, ", ".join(each._meta.label for each in models), models[0]


def check_managers(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of managers whose ``bulk_create()`` guesses among several databases."""
    if len(django_settings.DATABASES) < 2:
        return []
    return [
        checks.Warning(
            f"{model._meta.label} has a HiLoField, but its default manager is not a "
            f"HiLoManager: bulk_create() may use the counter of the wrong database.",
            hint="Set objects = HiLoManager(), or base the manager on HiLoQuerySet.",
            obj=model,
            id="django_hilo.W107",
        )
        for model in apps.get_models()
        if any(
            isinstance(field, HiLoField) and not field.is_copy
            for field in model._meta.fields
        )
        and not isinstance(model._default_manager.all(), HiLoQuerySet)
    ]
