"""System checks of the databases of rows and counters."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.core import checks
from django.db import connections, router

from django_hilo._allocation.registry import (
    CounterField,
    counter_fields,
    home_of,
    series_fields,
)
from django_hilo._database.dialects import dialect_of
from django_hilo._database.identity import database_key
from django_hilo._operations.locations import aliases
from django_hilo.checks.answers import answers
from django_hilo.checks.settings import are_node_tags, error, is_alias
from django_hilo.conf import settings
from django_hilo.models import ServerPrefix


def check_homes(**kwargs: Any) -> Iterator[checks.CheckMessage]:
    """Check the databases that store the counters of rows."""
    if not is_alias(settings.DATABASE) or not are_node_tags(settings.NODE_TAG):
        return  # check_settings reports it
    by_tag: dict[str, dict[Any, str]] = defaultdict(dict)
    used: set[str] = set()
    texts = set(_aliases_of(_text_fields()))
    for alias in _aliases_of([*counter_fields(), *series_fields()]):
        home = home_of(alias)
        used |= {alias, home}
        if home != alias and dialect_of(connections[home]).has_one_writer:
            yield error(
                f"The counters of rows on {alias!r} would be stored on {home!r}, which "
                f"is SQLite: a rollback there would not undo a change here.",
                "Store the counters with the rows, or on a database server.",
                "E006",
            )
        if alias in texts:
            by_tag[settings.node_tag(home)][database_key(home)[1:]] = home
    for alias in sorted(used):
        if not dialect_of(connections[alias]).name:
            yield checks.Warning(
                f"django-hilo is not tested on {connections[alias].display_name}, "
                f"which {alias!r} uses for HiLo ids or counters.",
                hint="Use SQLite, PostgreSQL, MariaDB or MySQL. Otherwise test your "
                "project with several processes at once, then silence this check.",
                id="django_hilo.W034",
            )
    for tag, homes in by_tag.items():
        if len(homes) > 1:
            yield checks.Warning(
                f"The databases {', '.join(sorted(homes.values()))} share the node tag "
                f"{tag!r}, so two objects may get the same id.",
                hint="Give each its own tag, as in HILO = {'NODE_TAG': {'default': "
                "'A', 'other': 'B'}}, or set HILO['DATABASE'] to one database.",
                id="django_hilo.W007",
            )


def check_hidden_tags(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Require different server prefixes if ids hide different node tags."""
    tags = settings.NODE_TAG
    if settings.SHOW_NODE_TAG or not isinstance(tags, dict) or len(tags) < 2:
        return
    if not are_node_tags(tags):
        return  # check_settings reports it
    prefixes: dict[str, str] = {}
    homes = {home_of(alias) for alias in _aliases_of(_text_fields())}
    for home in homes.intersection(databases or ()):
        yield from answers(partial(_read, home, prefixes), home, "The server prefix")
    if len(set(prefixes.values())) < len(prefixes):
        yield error(
            f"Ids do not show the node tag (HILO['SHOW_NODE_TAG']), and the server "
            f"prefixes of the nodes do not differ: {prefixes}.",
            "Give each node its own ServerPrefix, or show the node tag.",
            "E009",
        )


def _read(home: str, prefixes: dict[str, str]) -> Iterable[checks.CheckMessage]:
    rows = ServerPrefix.objects.using(home).filter(node_tag=settings.node_tag(home))
    prefixes[home] = "".join(row.prefix for row in rows)
    return ()


def _aliases_of(fields: Iterable[CounterField]) -> list[str]:
    """Return the databases whose tables have one of the fields."""
    models = [field.model for field in fields]
    return [
        alias
        for alias in aliases()
        if any(router.allow_migrate_model(alias, model) for model in models)
    ]


def _text_fields() -> list[CounterField]:
    # Integers show no tag: each table counts for itself.
    return [field for field in counter_fields() if not field.is_integer]
