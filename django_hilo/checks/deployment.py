"""Deploy checks: whether the databases keep what the counters promise.

They look at all databases, since ``check --deploy`` names none. In tests they look only
at the databases that are named. A database that does not answer is reported, and does
not stop the others. Whether counters are above the ids in the tables is for
``hilo_raise_max --check``, which reads them.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.core import checks
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from django_hilo._allocation.find import resolve
from django_hilo._database.own_connection import is_test_process
from django_hilo._operations.locations import aliases, fields_on, homes
from django_hilo.checks import servers
from django_hilo.checks.answers import answers
from django_hilo.checks.settings import are_node_tags, are_sources, is_alias
from django_hilo.conf import settings
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH
from django_hilo.models import GaplessCounter, HiLoDocument


def check_servers(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Look for writers beside us, lost commits, and what runs out soon."""
    if not (
        is_alias(settings.DATABASE)
        and are_node_tags(settings.NODE_TAG)
        and are_sources(settings.SOURCES)
    ):
        return  # check_settings reports them
    named = databases or (() if is_test_process() else aliases())
    for alias in (each for each in aliases() if each in named):
        connection = connections[alias]
        of_homes = _OF_HOMES if alias in homes() else ()
        for check in (*of_homes, *_OF_ALL):
            found = answers(partial(check, connection), alias, "The server")
            yield from found
            if found and connection.connection is None:
                break  # the others could not reach it either


def short_columns(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of columns and formats that the numbers will soon outgrow."""
    for field in fields_on(connection.alias):
        ask = partial(_short_column, field, connection.alias)
        yield from answers(ask, connection.alias, f"The column of {field}")


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
_OF_ALL = (servers.two_writers, short_columns)


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
            remedy = (
                "Widen it, and the columns that refer to it, to bigint first. A "
                "smaller max_capacity wastes fewer numbers: processes that wait for "
                "the counter reserve up to 32 times as many."
            )
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
