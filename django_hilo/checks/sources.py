"""System checks of counters that other systems own, against the database's catalog."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.core import checks
from django.db import Error, connections

from django_hilo._allocation.registry import counter_fields, given_source
from django_hilo._database.dialects import dialect_of
from django_hilo._operations.locations import aliases, fields_on, other_sources
from django_hilo.checks.settings import are_sources
from django_hilo.conf import settings
from django_hilo.counters.source import Fault, Source
from django_hilo.sources.foreign import ForeignCounter


def check_missing(**kwargs: Any) -> list[checks.CheckMessage]:
    """Ask for arguments without which a source may be read by the wrong formula."""
    sources = settings.SOURCES if are_sources(settings.SOURCES) else {}
    named = {f"HILO['SOURCES'][{name!r}]": found for name, found in sources.items()}
    named.update((str(field), field.source) for field in counter_fields())
    return [
        checks.Error(
            f"The source of {place} is incomplete, so it may give ids twice.",
            hint=f"Add {source.missing}.",
            id="django_hilo.E026",
        )
        for place, source in named.items()
        if isinstance(source, ForeignCounter) and source.missing
    ]


def check_sources(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Compare each source with the database: an error if ids would be wrong."""
    for alias in _checked(databases):
        sources = {
            source.key: source
            for _, source in other_sources(alias)
            if isinstance(source, Source)  # else another check reports it
        }
        for source in sources.values():
            yield from map(_message, _faults(source, alias))
        yield from _mixed(sources.values(), alias)


def check_other_writers(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Warn if AUTO_INCREMENT would give the numbers of a range to other writers."""
    for alias in _checked(databases):
        dialect = dialect_of(connections[alias])
        if dialect.draws_keys_from_sequence or dialect.raises_key_default:
            continue
        labels = [
            field.model._meta.label
            for field in fields_on(alias)
            if field.is_integer and given_source(field) is None
        ]
        if labels:
            yield checks.Warning(
                f"On {alias!r} the keys of {', '.join(labels)} come from HiLoDocument, "
                f"but AUTO_INCREMENT gives the same numbers to rows that other writers "
                f"insert.",
                hint="Stop writers that leave the key to the database, including old "
                "versions of this project, before you start this one; then silence "
                "this check (SILENCED_SYSTEM_CHECKS).",
                id="django_hilo.W025",
            )


def _checked(databases: Sequence[str] | None) -> list[str]:
    """Return the databases to look at; none where SOURCES cannot be read."""
    if not are_sources(settings.SOURCES):
        return []  # check_settings reports it
    return [alias for alias in aliases() if alias in (databases or ())]


def _mixed(sources: Iterable[Source], alias: str) -> Iterator[checks.CheckMessage]:
    """Yield errors if two formulas read one stored number."""
    readings: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        if isinstance(source, ForeignCounter):
            readings[source.name].add(source.formula.reading)
    for name, found in readings.items():
        if len(found) > 1:
            yield checks.Error(
                f"{name} on {alias!r} is read by different formulas: "
                f"{', '.join(sorted(found))}. Ids would be given twice.",
                hint="Use the same source everywhere, with the partner's size.",
                id="django_hilo.E024",
            )


def _faults(source: Source, alias: str) -> list[Fault]:
    try:
        return source.faults(alias)
    except Error as error:
        told = str(error).strip().rstrip(".")
        return [
            Fault(
                f"{source.name} on {alias!r} cannot be read: {told}.",
                "Grant this database user access to it, or correct the source.",
                is_certain=False,
            )
        ]


def _message(fault: Fault) -> checks.CheckMessage:
    if fault.is_certain:
        # Before a migration that mends it, too, Django runs this check.
        hint = f"{fault.remedy} If a migration fixes this, run: migrate --skip-checks"
        return checks.Error(fault.message, hint=hint, id="django_hilo.E023")
    return checks.Warning(fault.message, hint=fault.remedy, id="django_hilo.W024")
