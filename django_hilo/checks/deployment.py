"""Deploy checks: whether the databases keep what the counters promise.

They look at all databases, since ``check --deploy`` names none. In tests they look only
at the databases that are named. A database that does not answer is reported, and does
not stop the others. Tables are looked at by index only, a bounded number of times;
``hilo_raise_max --dry-run`` reads them whole.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.core import checks
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max, Q

from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import given_source
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.own_connection import is_test_process
from django_hilo._operations.highest_numbers import sparing
from django_hilo._operations.locations import (
    aliases,
    fields_on,
    gapless_fields_on,
    homes,
)
from django_hilo.checks import servers
from django_hilo.checks.settings import are_node_tags, are_sources, is_alias
from django_hilo.conf import settings
from django_hilo.counters.gapless import last_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, IdFormat
from django_hilo.models import GaplessCounter, HiLoDocument

# Numbers over Max that are looked for: these, and the first of that many ranges.
_NEXT = 32
_RANGES = 100
# Texts after the start of an anchored id; a locale may have others between them.
_NEAREST = 3


def check_servers(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Look for ids that would be given twice, lost commits, and what runs out soon."""
    if not (
        is_alias(settings.DATABASE)
        and are_node_tags(settings.NODE_TAG)
        and are_sources(settings.SOURCES)
    ):
        return  # check_settings reports them
    named = databases or (() if is_test_process() else aliases())
    for alias in (each for each in aliases() if each in named):
        connection = connections[alias]
        try:
            of_homes = _OF_HOMES if alias in homes() else ()
            for check in (*of_homes, *_OF_ALL):
                yield from check(connection)
        except Error as problem:
            if classify(problem, connection) is not ErrorKind.NO_TABLE:
                yield checks.Info(
                    f"The server of {alias!r} could not be inspected: {problem}",
                    hint="Run the check after migrate, with enough privileges.",
                    id="django_hilo.I030",
                )


def low_counters(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of counters whose next numbers rows have already."""
    alias = connection.alias
    for field in fields_on(alias):
        yield from _each(alias, _low_counter, field)
    for field in gapless_fields_on(alias):
        yield from _each(alias, _low_gapless_counter, field)


def short_columns(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of columns and formats that the numbers will soon outgrow."""
    for field in fields_on(connection.alias):
        yield from _each(connection.alias, _short_column, field)


def last_numbers(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of counters in the last tenth of all numbers; ``connection`` is a home's."""
    near = MAX_NUMBER // 10 * 9
    high = HiLoDocument.objects.using(connection.alias).filter(
        Q(max__gt=near) | Q(floor__gt=near)
    )
    found = [(f"counter {row.id!r}", row.next_low - 1) for row in high[:10]]
    gapless = GaplessCounter.objects.using(connection.alias).filter(last__gt=near)
    found += [(f"gapless counter {row.pk!r}", row.last) for row in gapless[:10]]
    for name, number in found:
        yield checks.Warning(
            f"The {name} on {connection.alias!r} is at {number}; the highest possible "
            f"number is {MAX_NUMBER} (2^63-1).",
            hint="If it was raised by mistake, lower it in the admin; otherwise give "
            "the field another collection.",
            id="django_hilo.W032",
        )


_OF_HOMES = (
    *(servers.lost_commits, servers.without_locks, servers.shared_tag),
    *(servers.few_connections, last_numbers),
)
_OF_ALL = (servers.pooler, servers.two_writers, low_counters, short_columns)


def _each(
    alias: str, check: Callable[[Any, str], Iterator[checks.CheckMessage]], field: Any
) -> list[checks.CheckMessage]:
    try:
        with sparing(alias):
            return list(check(field, alias))
    except HiLoError:
        return []  # check_sources reports it
    except Error as error:
        if classify(error, connections[alias]) is ErrorKind.NO_TABLE:
            return []  # before its migration, or a table that is not Django's
        raise


def _low_counter(field: Any, alias: str) -> Iterator[checks.CheckMessage]:
    if not _is_indexed(field) or getattr(field, "convention", None) is not None:
        return
    if field.is_integer and given_source(field) is None:
        return  # each process starts over the rows by itself
    counter = resolve(field, alias)
    last = counter.source.read_max(counter.using)
    if field.is_integer:
        rows = field.model._base_manager.using(alias)
        top = rows.aggregate(top=Max(field.attname))["top"] or 0
        found = (top, str(top)) if top > last else None
    else:
        found = _next_id(
            field, alias, counter.next_format(), last, counter.capacities[0]
        )
    # A range that was reserved meanwhile has rows by now.
    if found is not None and found[0] > counter.source.read_max(counter.using):
        yield _is_low(field, alias, counter.source.name, last, found[1])


def _low_gapless_counter(field: Any, alias: str) -> Iterator[checks.CheckMessage]:
    if not _is_indexed(field):
        return
    collection = field.collection_name
    last = last_gapless_number(collection, alias)
    format = IdFormat.of(collection, settings.SEPARATOR)
    found = _next_id(field, alias, format, last, _NEXT)
    if found is not None and found[0] > last_gapless_number(collection, alias):
        name = f"gapless counter {collection.lower()!r}"
        yield _is_low(field, alias, name, last, found[1])


def _is_low(
    field: Any, alias: str, name: str, last: int, taken: str
) -> checks.CheckMessage:
    return checks.Warning(
        f"On {alias!r} the {name} is at {last}, but {field.model._meta.label} already "
        f"has {taken!r}, which would be given again.",
        hint=f"Run: python manage.py hilo_raise_max --database={alias}",
        obj=field,
        id="django_hilo.W031",
    )


def _next_id(
    field: Any, alias: str, format: IdFormat, above: int, step: int
) -> tuple[int, str] | None:
    """Return the lowest of the next numbers that a row has already, and its id."""
    following = range(above + 1, above + 1 + _NEXT)
    firsts = range(above + 1, above + 1 + step * _RANGES, step)
    ids = {
        format.text(number): number
        for number in sorted({*following, *firsts})
        if number <= MAX_NUMBER
    }
    rows = field.model._base_manager.using(alias).order_by()
    texts = rows.values_list(field.attname, flat=True)
    if getattr(field, "anchor", None) is None:
        found = texts.filter(**{f"{field.attname}__in": list(ids)})
        return min(((ids.get(id, above + 1), id) for id in found), default=None)
    for id, number in ids.items():
        # LIKE would use no index on SQLite, nor on PostgreSQL but in the locale C.
        start = f"{id}$"
        nearest = texts.filter(**{f"{field.attname}__gte": start})
        for text in nearest.order_by(field.attname)[:_NEAREST]:
            if text.startswith(start):
                return number, text
    return None


def _short_column(field: Any, alias: str) -> Iterator[checks.CheckMessage]:
    counter = resolve(field, alias)
    limits = list(_limits(field, alias, counter))
    if not limits:
        return
    last = counter.source.read_max(counter.using)
    for limit, what, remedy in limits:
        if last > limit // 10 * 9:
            yield checks.Warning(
                f"On {alias!r} the ids of {field.model._meta.label} are at {last}, and "
                f"{what} allows at most {limit}.",
                hint=remedy,
                obj=field,
                id="django_hilo.W033",
            )


def _limits(field: Any, alias: str, counter: Any) -> Iterator[tuple[int, str, str]]:
    """Yield each limit of an id: the highest number, its cause, and what to do."""
    if field.is_integer:
        kind = _type_of(field, connections[alias])
        _, highest = connections[alias].ops.integer_field_range(kind)
        if highest is not None and highest < MAX_NUMBER:
            remedy = "Widen it, and the columns that refer to it, to bigint first."
            yield highest, f"the type of the column {field.column!r}", remedy
        return
    if getattr(field, "convention", None) is not None:
        return
    if counter.width:
        remedy = (
            "Beyond that, ids get longer and sort differently from their numbers: "
            "order by id__number, or use a larger width and another collection."
        )
        yield 10**counter.width - 1, f"width={counter.width}", remedy
    start, end, _ = counter.next_format()
    room = (field.max_length or MAX_WIDTH * 10) - len(start) - len(end)
    if room < MAX_WIDTH:
        remedy = "Set a larger max_length and migrate."
        highest = 10 ** max(room, 0) - 1
        yield highest, f"max_length={field.max_length}", remedy


def _type_of(field: Any, connection: BaseDatabaseWrapper) -> str:
    """Return Django's name for the type that the column has in the database."""
    table, introspection = field.model._meta.db_table, connection.introspection
    with connection.cursor() as cursor:
        columns = introspection.get_table_description(cursor, table)
    for column in columns:
        if column.name.lower() == field.column.lower():
            kind = introspection.get_field_type(column.type_code, column)
            if kind in connection.ops.integer_field_ranges:
                return str(kind)
    return "BigIntegerField"


def _is_indexed(field: Any) -> bool:
    return bool(field.unique or field.db_index)
