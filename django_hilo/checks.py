"""System checks of the settings and of the models together; see docs/checks.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings as django_settings
from django.core import checks
from django.db import connections, models, router

from django_hilo.conf import KEYS, settings
from django_hilo.connections import database_key
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.fields import HiLoField
from django_hilo.identifiers import check_node_tag, check_separator
from django_hilo.managers import HiLoQuerySet
from django_hilo.models import ServerPrefix
from django_hilo.sharding.checks import are_shards, check_shards, fault_of
from django_hilo.tables import aliases, counter_fields
from django_hilo.targets import CounterField, home_of

# Seconds; what the databases' settings can hold.
LONGEST_WAIT = 86_400


def register() -> None:
    """Register the checks; called by ``AppConfig.ready()``."""
    checks.register(check_settings, "django_hilo")
    checks.register(check_homes, "django_hilo")
    checks.register(check_collections, checks.Tags.models)
    checks.register(check_managers, checks.Tags.models)
    checks.register(check_shards, checks.Tags.models)
    checks.register(check_hidden_tags, checks.Tags.database)


def check_settings(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check the keys of ``HILO`` and their values."""
    given = getattr(django_settings, "HILO", {})
    if not isinstance(given, dict):
        return [_error("HILO must be a dict.", "See README, Settings.", "E001")]
    unknown = [
        _error(
            f"HILO has no key {key!r}.",
            f"Remove it, or mend the spelling: {', '.join(sorted(KEYS))}.",
            "E001",
        )
        for key in given
        if key not in KEYS
    ]
    wrong = [
        _error(_fault_of(key), f"It must be {must}.", id)
        for key, is_right, must, id in _RULES
        if not is_right(getattr(settings, key))
    ]
    return [*unknown, *wrong]


def check_homes(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check which databases hold the counters of which rows."""
    if (
        not _is_alias(settings.DATABASE)
        or not _are_node_tags(settings.NODE_TAG)
        or not are_shards(settings.SHARDS)
    ):
        return []  # check_settings tells
    found: list[checks.CheckMessage] = []
    by_tag: dict[str, dict[Any, str]] = defaultdict(dict)
    for alias in _aliases_with_ids():
        home = home_of(alias)
        if home != alias and connections[home].vendor == "sqlite":
            found.append(
                _error(
                    f"The counters of rows on {alias!r} would live on {home!r}, which "
                    f"is SQLite: a rollback there could not undo what is stored here.",
                    "Keep the counters with the rows, or on PostgreSQL or MariaDB.",
                    "E006",
                )
            )
        by_tag[settings.node_tag(home)][database_key(home)[1:]] = home
    for tag, homes in by_tag.items():
        if len(homes) > 1:
            found.append(
                checks.Warning(
                    f"The databases {', '.join(sorted(homes.values()))} share the node "
                    f"tag {tag!r}, so two objects may get the same id.",
                    hint="Give each its own, as in HILO = {'NODE_TAG': {'default': "
                    "'A', 'other': 'B'}}, or name one home in HILO['DATABASE'].",
                    id="django_hilo.W007",
                )
            )
    return found


def check_collections(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Warn where models that have nothing to do with each other share a counter."""
    models_of: dict[str, list[type[models.Model]]] = defaultdict(list)
    implicit: set[str] = set()
    for field in counter_fields():
        collection = field.collection_name.lower()
        models_of[collection].append(field.model)
        if getattr(field, "collection", None) is None:
            implicit.add(collection)
    return [
        checks.Warning(
            f"{', '.join(model._meta.label for model in sharing)} share the collection "
            f"{collection!r}, and so one counter.",
            hint="Set collection= on their fields: different ones, or the same one on "
            "all where that is meant.",
            obj=sharing[0],
            id="django_hilo.W008",
        )
        for collection, sharing in models_of.items()
        if len(sharing) > 1 and collection in implicit
    ]


def check_managers(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Warn of managers whose ``bulk_create()`` guesses among several databases."""
    if len(django_settings.DATABASES) < 2:
        return []
    return [
        checks.Warning(
            f"{model._meta.label} has a HiLoField, but its default manager is no "
            f"HiLoManager: bulk_create() takes the ids of a database that it guesses.",
            hint="Set objects = HiLoManager(), or build the manager from HiLoQuerySet.",
            obj=model,
            id="django_hilo.W107",
        )
        for model in apps.get_models()
        if any(isinstance(field, HiLoField) for field in model._meta.fields)
        and not isinstance(model._default_manager.all(), HiLoQuerySet)
    ]


def check_hidden_tags(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Demand different server prefixes where ids hide different node tags."""
    tags = settings.NODE_TAG
    if settings.SHOW_NODE_TAG or not isinstance(tags, dict) or len(tags) < 2:
        return []
    prefixes = {}
    homes = {home_of(alias) for alias in _aliases_with_ids()}
    for home in homes.intersection(databases or ()):
        tables = connections[home].introspection.table_names()
        if ServerPrefix._meta.db_table in tables:
            rows = ServerPrefix.objects.using(home)
            row = rows.filter(node_tag=settings.node_tag(home)).first()
            prefixes[home] = row.prefix if row else ""
    if len(set(prefixes.values())) == len(prefixes):
        return []
    return [
        _error(
            f"Ids hide the node tag (HILO['SHOW_NODE_TAG']), and the server prefixes "
            f"do not tell the nodes apart: {prefixes}.",
            "Give each node a ServerPrefix of its own, or show the node tag.",
            "E009",
        )
    ]


def _error(message: str, hint: str, number: str) -> checks.Error:
    return checks.Error(message, hint=hint, id=f"django_hilo.{number}")


def _aliases_with_ids() -> list[str]:
    with_ids = [
        model
        for model in apps.get_models()
        if any(isinstance(field, CounterField) for field in model._meta.local_fields)
    ]
    return [
        alias
        for alias in aliases()
        if any(router.allow_migrate_model(alias, model) for model in with_ids)
    ]


def _fault_of(key: str) -> str:
    if key == "SHARDS":
        return fault_of(settings.SHARDS)
    # A token that was put in place of its digest must not reach a log.
    hidden = key == "RAVENDB_TOKENS"
    return f"HILO[{key!r}] is {'wrong' if hidden else repr(getattr(settings, key))}."


def _is_inside(check: Callable[[str], str], value: Any) -> bool:
    try:
        return isinstance(value, str) and check(value) == value
    except InvalidDocumentId:
        return False


def _are_node_tags(value: Any) -> bool:
    if isinstance(value, dict):
        return all(alias in connections for alias in value) and all(
            _are_node_tags(tag) and not isinstance(tag, dict) for tag in value.values()
        )
    return bool(value) and _is_inside(check_node_tag, value)


def _is_alias(value: Any) -> bool:
    return value is None or value in connections


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= LONGEST_WAIT


def _are_names_of_aliases(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and name and "/" not in name and alias in connections
        for name, alias in value.items()
    )


def _are_digests(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)
        for digest in value
    )


_SECONDS = f"a number of seconds over 0, up to {LONGEST_WAIT}"
_RULES: list[tuple[str, Callable[[Any], bool], str, str]] = [
    (
        "NODE_TAG",
        _are_node_tags,
        "1 to 4 upper-case letters, or a dict of them by database alias",
        "E002",
    ),
    (
        "SEPARATOR",
        lambda value: _is_inside(check_separator, value),
        "one ASCII punctuation character, none of '_', '-', '|', '$'",
        "E003",
    ),
    ("DATABASE", _is_alias, "None or an alias of DATABASES", "E004"),
    ("SHOW_NODE_TAG", lambda value: isinstance(value, bool), "True or False", "E005"),
    ("CAPACITY", _is_count, "a whole number of at least 1", "E005"),
    ("MAX_CAPACITY", _is_count, "a whole number of at least CAPACITY", "E005"),
    ("MAX_FLOOR_JUMP", _is_count, "a whole number of at least 1", "E005"),
    ("MAX_NUMBERS_PER_REQUEST", _is_count, "a whole number of at least 1", "E005"),
    (
        "SHARDS",
        are_shards,
        "a dict of all shards, aliases of DATABASES, each with its buckets or None, "
        "and of prefixes of ids, each with a list of shards",
        "E012",
    ),
    (
        "RAVENDB_DATABASES",
        _are_names_of_aliases,
        "a dict of texts, each with an alias of DATABASES",
        "E010",
    ),
    (
        "RAVENDB_TOKENS",
        _are_digests,
        "a list of SHA-256 digests, 64 lower-case hexadecimal digits each: "
        "hashlib.sha256(token.encode()).hexdigest()",
        "E011",
    ),
    (
        "LOCK_TIMEOUT",
        _is_seconds,
        _SECONDS,
        "E005",
    ),
    (
        "RETRY_FOR",
        _is_seconds,
        _SECONDS,
        "E005",
    ),
]
