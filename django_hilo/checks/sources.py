"""System checks of counters that other systems own, against the database's catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, Error, connections

from django_hilo.conf import settings
from django_hilo.sources.base import Fault, Source
from django_hilo.tables import aliases, may_have_table
from django_hilo.targets import counter_fields, named_source


def check_sources(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Compare each source with the database: an error where ids would be wrong."""
    asked: set[tuple[str, tuple[str, str]]] = set()
    found: list[checks.CheckMessage] = []
    for alias, source in _sources(databases or ()):
        if (alias, source.key) not in asked:
            asked.add((alias, source.key))
            found += [_message(fault) for fault in _faults(source, alias)]
    return found


def check_other_writers(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Warn where AUTO_INCREMENT would give the numbers of a range to other writers."""
    found: list[checks.CheckMessage] = []
    for alias in set(databases or ()).intersection(aliases()):
        if connections[alias].vendor != "mysql":
            continue
        labels = [
            field.model._meta.label
            for field in counter_fields()
            if field.is_integer and _given(field) is None
            if may_have_table(alias, field.model)
        ]
        if labels:
            found.append(
                checks.Warning(
                    f"On {alias!r} the keys of {', '.join(labels)} are numbered by "
                    f"HiLoDocument, and AUTO_INCREMENT gives the same numbers to rows "
                    f"that others insert.",
                    hint="Stop writers that leave the key to the database, old "
                    "versions of this project too, before this one starts; then "
                    "silence this check (SILENCED_SYSTEM_CHECKS).",
                    id="django_hilo.W025",
                )
            )
    return found


def _sources(databases: Sequence[str]) -> Iterator[tuple[str, Source]]:
    named = dict(settings.SOURCES) if isinstance(settings.SOURCES, dict) else {}
    for field in counter_fields():
        named.pop(field.collection_name, None)
        for alias in databases:
            if alias in aliases() and may_have_table(alias, field.model):
                given = _given(field)
                if given is None and field.is_integer:
                    given = field.counter_of(alias)[1]
                if given is not None:
                    yield alias, given
    if DEFAULT_DB_ALIAS in databases:
        for source in named.values():
            yield DEFAULT_DB_ALIAS, source


def _given(field: Any) -> Source | None:
    return field.source or named_source(field.collection_name)


def _faults(source: Source, alias: str) -> list[Fault]:
    try:
        return source.faults(alias)
    except Error as error:
        return [Fault(f"{source.name} on {alias!r} cannot be read:", str(error), False)]


def _message(fault: Fault) -> checks.CheckMessage:
    if fault.is_certain:
        return checks.Error(fault.message, hint=fault.remedy, id="django_hilo.E023")
    return checks.Warning(fault.message, hint=fault.remedy, id="django_hilo.W024")
