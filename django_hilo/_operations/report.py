"""The rows that `hilo_show` prints, as JSON or as tables.

docs/reference/commands.md documents their keys, which do not change.
"""

from collections.abc import Iterable
from typing import Any

from django.db import Error, connections

from django_hilo._allocation.registry import fields_of, series_fields_of
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._operations.locations import (
    gapless_fields_of,
    gapless_fields_on,
    homes,
    other_sources,
    series_fields_on,
)
from django_hilo.exceptions import HiLoError
from django_hilo.models import GaplessCounter, HiLoDocument

Row = dict[str, Any]

_NOT_MIGRATED = {ErrorKind.NO_TABLE, ErrorKind.NO_COLUMN}


def counters(databases: Iterable[str]) -> list[Row]:
    """Return the counters of some databases."""
    return [
        {
            "database": alias,
            "collection": document.collection,
            "node_tag": document.node_tag,
            "max": document.max,
            "floor": document.floor,
            "low": document.low if document.size > 0 else None,
            "high": document.low + document.size - 1 if document.size > 0 else None,
            "reserved_at": document.reserved_at and document.reserved_at.isoformat(),
            "models": _models_of(document.collection, fields_of(document.collection)),
        }
        for alias in databases
        for document in HiLoDocument.objects.using(alias)
    ]


def sources(databases: Iterable[str]) -> list[Row]:
    """Return the counters of other systems, each with the highest number so far."""
    rows = []
    for alias in databases:
        for collection, source in other_sources(alias):
            number, error = None, None
            try:
                number = source.read_max(alias)
            except (HiLoError, Error) as problem:
                error = first_line(problem)
            row = {"database": alias, "collection": collection, "source": source.name}
            last = source.max_number
            rows.append({**row, "max": number, "max_number": last, "error": error})
    return rows


def first_line(error: Exception) -> str:
    """Return the part of a database's error that says what is wrong."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def told(error: Exception, alias: str) -> str:
    """Return what a command prints of an error on a database, in one line."""
    is_old = classify(error, connections[alias]) in _NOT_MIGRATED
    hint = " (Have all migrations been applied?)" if is_old else ""
    return f"{first_line(error)}{hint}"


def reach(*aliases: str) -> None:
    """Raise `HiLoError` for the first of these databases that cannot be reached."""
    for alias in dict.fromkeys(aliases):
        try:
            connections[alias].ensure_connection()
        except Error as error:
            raise HiLoError(f"{alias}: {told(error, alias)}") from error


def gapless_counters(databases: Iterable[str]) -> list[Row]:
    """Return the counters of gapless numbers, of databases that have their table."""
    return [
        {
            "database": alias,
            "collection": counter.collection,
            "last": counter.last,
            "models": _models_of(
                counter.collection, gapless_fields_of(counter.collection)
            ),
        }
        for alias in databases
        if _has_gapless_numbers(alias)
        for counter in GaplessCounter.objects.using(alias)
    ]


def _models_of(collection: str, fields: Iterable[Any]) -> list[str]:
    """Return the labels of the models of fields, and of series with this name."""
    found = [*fields, *series_fields_of(collection)]
    return list(dict.fromkeys(field.model._meta.label for field in found))


def _has_gapless_numbers(alias: str) -> bool:
    has_fields = gapless_fields_on(alias) or series_fields_on(alias)
    if alias not in homes() and not has_fields:
        return False
    table = GaplessCounter._meta.db_table
    return table in connections[alias].introspection.table_names()
