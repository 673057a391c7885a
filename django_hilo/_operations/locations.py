"""Which databases have which counters and tables."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, models, router

from django_hilo._allocation.registry import (
    counter_fields,
    fields_of,
    given_source,
    home_of,
    routed,
    series_fields,
)
from django_hilo.conf import settings
from django_hilo.counters.own import OwnSource
from django_hilo.counters.source import Source
from django_hilo.fields import GaplessIdField
from django_hilo.models import HiLoDocument


def gapless_fields() -> Iterator[Any]:
    """Yield the fields of all installed models whose ids may be gapless."""
    for model in apps.get_models():
        if not model._meta.proxy:
            for field in model._meta.local_fields:
                may_be = getattr(field, "server_ids", isinstance(field, GaplessIdField))
                is_plain = not getattr(field, "is_copy", False)
                if may_be and is_plain and not getattr(field, "per", ()):
                    yield field


def gapless_fields_on(using: str) -> list[Any]:
    """Return the fields of gapless ids whose tables are on a database."""
    return [each for each in gapless_fields() if may_have_table(using, each.model)]


def gapless_fields_of(collection: str) -> list[Any]:
    """Return the fields of a collection's gapless ids, whatever its case."""
    name = collection.lower()
    return [f for f in gapless_fields() if f.collection_name.lower() == name]


def fields_on(using: str) -> Iterator[Any]:
    """Return the HiLo fields whose tables are on a database."""
    return (each for each in counter_fields() if may_have_table(using, each.model))


def series_fields_on(using: str) -> list[Any]:
    """Return the fields with a counter for each series whose tables are there."""
    return [each for each in series_fields() if may_have_table(using, each.model)]


def other_sources(using: str) -> list[tuple[str, Source]]:
    """Return the counters of other systems on a database, each with its collection.

    Sources of HILO["SOURCES"] that no model uses are taken to be on "default".
    """
    found = []
    for field in fields_on(using):
        source = given_source(field)
        if source is None and field.is_integer:
            source = field.home_and_source(using)[1]
        if source is not None and not isinstance(source, OwnSource):
            found.append((field.collection_name, source))
    if using == DEFAULT_DB_ALIAS:
        found += [
            (name, source)
            for name, source in settings.SOURCES.items()
            if not fields_of(name)
        ]
    return found


def may_have_table(using: str, model: type[models.Model]) -> bool:
    """Whether a model's rows are on a database: migrated, or sent there by a router."""
    return bool(router.allow_migrate_model(using, model)) or using in (
        routed(model, "db_for_write"),
        routed(model, "db_for_read"),
    )


def homes() -> list[str]:
    """Return the databases that may hold counters, the first alias first."""
    found = dict.fromkeys(home_of(alias) for alias in aliases())
    return [
        home
        for home in found
        if home == settings.DATABASE or may_have_table(home, HiLoDocument)
    ]


def aliases() -> list[str]:
    """Return the aliases of DATABASES, without those that mirror others in tests."""
    return [
        alias
        for alias in connections
        if not connections[alias].settings_dict["TEST"].get("MIRROR")
    ]


def served_by(home: str) -> list[str]:
    """Return the databases of the rows whose counters a home holds."""
    return [alias for alias in aliases() if home_of(alias) == home]
