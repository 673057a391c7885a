"""System checks of ``HILO``, key by key."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings as django_settings
from django.core import checks
from django.db import connections

from django_hilo._database.dialects.postgresql import WITH_STANDBY
from django_hilo.conf import KEYS, settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import check_collection, check_node_tag, check_separator
from django_hilo.sources.foreign import ForeignCounter

# Seconds; what the databases' settings can hold.
LONGEST_WAIT = 86_400


def check_settings(**kwargs: Any) -> Iterator[checks.CheckMessage]:
    """Check the keys of ``HILO`` and their values."""
    given = getattr(django_settings, "HILO", {})
    if not isinstance(given, dict):
        remedy = "Write HILO = {'NODE_TAG': 'A'}, or omit the setting."
        yield error("HILO must be a dict.", remedy, "E001")
        return
    spelling = f"Remove it, or correct the spelling: {', '.join(sorted(KEYS))}."
    for key in given:
        if key not in KEYS:
            yield error(f"{key!r} is not a key of HILO.", spelling, "E001")
    for key, is_right, must, id in _RULES:
        if not is_right(getattr(settings, key)):
            yield error(_fault_of(key), f"It must be {must}.{_cause_of(key)}", id)


def error(message: str, hint: str, number: str) -> checks.Error:
    """Return an error of a check with this number."""
    return checks.Error(message, hint=hint, id=f"django_hilo.{number}")


def _fault_of(key: str) -> str:
    # A token that was put in place of its digest must not reach a log.
    hidden = key == "RAVENDB_TOKENS"
    return f"HILO[{key!r}] is {'wrong' if hidden else repr(getattr(settings, key))}."


def _cause_of(key: str) -> str:
    """Name the entry of a dict that is wrong; "" if none stands out."""
    value = getattr(settings, key)
    entries = value if isinstance(value, dict) else {}
    unknown = [repr(alias) for alias in entries if alias not in connections]
    if key == "NODE_TAG" and unknown:
        return f" DATABASES has no alias {', '.join(unknown)}."
    texts = [repr(name) for name, each in entries.items() if isinstance(each, str)]
    if key == "SOURCES" and texts:
        return (
            f" The source of {', '.join(texts)} is a string: import the class and "
            f"write, for example, hibernate.HiLo(max_lo=9), without quotes."
        )
    return ""


def _is_inside(check: Callable[[str], str], value: Any) -> bool:
    try:
        return isinstance(value, str) and check(value) == value
    except InvalidDocumentId:
        return False


def are_node_tags(value: Any) -> bool:
    """Check a node tag, or a dict of node tags by database alias."""
    if isinstance(value, dict):
        return all(alias in connections for alias in value) and all(
            are_node_tags(tag) and not isinstance(tag, dict) for tag in value.values()
        )
    return bool(value) and _is_inside(check_node_tag, value)


def is_alias(value: Any) -> bool:
    """Check an alias of ``DATABASES``, or None."""
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


def are_sources(value: Any) -> bool:
    """Whether ``SOURCES`` is as it must be."""
    return (
        isinstance(value, dict)
        and all(
            _is_inside(check_collection, name) and isinstance(source, ForeignCounter)
            for name, source in value.items()
        )
        and len({name.lower() for name in value}) == len(value)
    )


_SECONDS = f"a number of seconds greater than 0 and at most {LONGEST_WAIT}"
_RULES: list[tuple[str, Callable[[Any], bool], str, str]] = [
    (
        "NODE_TAG",
        are_node_tags,
        "1 to 4 upper-case letters, or a dict of them by database alias",
        "E002",
    ),
    (
        "SEPARATOR",
        lambda value: _is_inside(check_separator, value),
        "one ASCII punctuation character other than '_', '-', '|' and '$'",
        "E003",
    ),
    ("DATABASE", is_alias, "None or an alias of DATABASES", "E004"),
    ("SHOW_NODE_TAG", lambda value: isinstance(value, bool), "True or False", "E005"),
    ("CAPACITY", _is_count, "an integer of at least 1", "E005"),
    ("MAX_CAPACITY", _is_count, "an integer of at least CAPACITY", "E005"),
    ("MAX_FLOOR_JUMP", _is_count, "an integer of at least 1", "E005"),
    ("MAX_NUMBERS_PER_REQUEST", _is_count, "an integer of at least 1", "E005"),
    (
        "SOURCES",
        are_sources,
        "a dict of collections and sources of django_hilo.sources, without two keys "
        "that differ only in case",
        "E022",
    ),
    (
        "RAVENDB_DATABASES",
        _are_names_of_aliases,
        "a dict of names and aliases of DATABASES",
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
        "SYNCHRONOUS_COMMIT",
        lambda value: value in (None, "local", *WITH_STANDBY),
        f"None, {', '.join(map(repr, WITH_STANDBY))}, or 'local'",
        "E005",
    ),
    ("LOCK_TIMEOUT", _is_seconds, _SECONDS, "E005"),
    ("RETRY_FOR", _is_seconds, _SECONDS, "E005"),
]
