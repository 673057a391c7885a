"""System checks of the models together."""

from collections import defaultdict
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks

from django_hilo._allocation.registry import counter_fields, named_source
from django_hilo.checks.settings import are_sources
from django_hilo.conf import settings
from django_hilo.fields import HiLoField
from django_hilo.managers import HiLoQuerySet


def check_integers(**kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a collection of several integer keys, each of which counts for itself."""
    if not are_sources(settings.SOURCES):
        return []  # check_settings reports it
    found: dict[str, list[Any]] = defaultdict(list)
    for field in counter_fields():
        if field.is_integer and field.source is None:
            found[str(field.collection_name).lower()].append(field.model)
    return [
        checks.Error(
            f"{', '.join(each._meta.label for each in models)} share the collection "
            f"{collection!r}, but each integer key has a counter for its own table.",
            hint="Give each another collection; or, to share numbers, the same source, "
            "such as database.Sequence('numbers').",
            obj=models[0],
            id="django_hilo.E021",
        )
        for collection, models in found.items()
        if len(models) > 1 and named_source(collection) is None
    ]


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
