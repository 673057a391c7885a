"""Which shard, a database alias, has which buckets: ``HILO["SHARDS"]``, read live.

``{"a": None, "b": None}`` gives the shards equal ranges of buckets, in this order
(RavenDB's default); ``{"a": (0, 99_999), "b": (100_000, 1_048_575)}`` names the ranges,
first to last, or lists of them. A key that ends in ``/`` or ``-`` is a prefix of ids,
with the shards that share those equally: ``{..., "eu/": ["a"]}`` (prefixed sharding).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_hilo.conf import settings
from django_hilo.sharding.bucket_count import BUCKETS


class Ranges(NamedTuple):
    """Ranges of buckets that cover all of them: where each starts, and its shard."""

    starts: tuple[int, ...]
    shards: tuple[str, ...]

    def shard(self, bucket: int) -> str:
        """Return the shard that has a bucket."""
        return self.shards[bisect_right(self.starts, bucket) - 1]


class Shards(NamedTuple):
    """The shards in the order of the settings, and who has which ids."""

    aliases: tuple[str, ...]
    ranges: Ranges
    # (prefix in lower case, its own ranges), the first that fits counts.
    prefixed: tuple[tuple[str, Ranges], ...]

    def ranges_of(self, id: str) -> Ranges:
        """Return the ranges that an id's bucket is looked up in."""
        start = id.lower()
        for prefix, ranges in self.prefixed:
            if start.startswith(prefix):
                return ranges
        return self.ranges

    def goes_on(self, start: str) -> bool:
        """Whether a prefix has more of an id than its start."""
        start = start.lower()
        return any(
            prefix.startswith(start) and prefix != start for prefix, _ in self.prefixed
        )


def shard_of(id: str) -> str:
    """Return the shard of an id: an alias of ``HILO["SHARDS"]``.

    Raises `InvalidDocumentId` for what is no text, ImproperlyConfigured without shards.
    """
    from django_hilo.sharding.buckets import bucket_of

    bucket = bucket_of(id)
    return shards().ranges_of(id).shard(bucket)


def shards() -> Shards:
    """Return the shards of the settings; raises ImproperlyConfigured."""
    return read_shards(settings.SHARDS)


def read_shards(given: Any) -> Shards:
    """Return what a value of ``HILO["SHARDS"]`` says; raises ImproperlyConfigured."""
    if not isinstance(given, dict):
        raise ImproperlyConfigured(
            f"HILO['SHARDS'] is {given!r}: a dict of all shards is needed, such as "
            f"{{'default': None, 'other': None}}."
        )
    try:
        return _read(_frozen(given))
    except TypeError as error:  # a value of no known kind, such as a set
        raise ImproperlyConfigured(f"HILO['SHARDS'] is {given!r}: {error}.") from error


def _frozen(given: Any) -> Any:
    if isinstance(given, dict):
        return tuple((key, _frozen(value)) for key, value in given.items())
    if isinstance(given, list | tuple):
        return tuple(_frozen(value) for value in given)
    return given


@lru_cache(maxsize=8)
def _read(given: tuple[tuple[str, Any], ...]) -> Shards:
    aliases = tuple(key for key, _ in given if key in connections)
    if not aliases:
        raise ImproperlyConfigured(
            "HILO['SHARDS'] names no shard: an alias of DATABASES is needed."
        )
    prefixes = {key: value for key, value in given if key not in connections}
    ranges = _ranges_of({key: value for key, value in given if key in connections})
    prefixed = {
        _prefix(key): _shared_equally([a for a in aliases if a in _named(key, value)])
        for key, value in prefixes.items()
        if _all_known(key, value, aliases)
    }
    if len(prefixed) < len(prefixes):
        raise ImproperlyConfigured(
            f"HILO['SHARDS'] names a prefix twice, in different case: "
            f"{', '.join(map(repr, prefixes))}."
        )
    # RavenDB tries them in descending order: of eu/de/ and eu/ the longer one first.
    return Shards(aliases, ranges, tuple(sorted(prefixed.items(), reverse=True)))


def _prefix(key: Any) -> str:
    if not isinstance(key, str) or not key.endswith(("/", "-")) or len(key) < 2:
        raise ImproperlyConfigured(
            f"HILO['SHARDS'] has the key {key!r}: neither an alias of DATABASES nor a "
            f"prefix of ids, which ends in '/' or '-'."
        )
    return key.lower()


def _named(key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, tuple) and value and all(isinstance(a, str) for a in value):
        return value
    raise ImproperlyConfigured(
        f"HILO['SHARDS'][{key!r}] is {value!r}: a list of the shards that share the "
        f"ids of this prefix is needed."
    )


def _all_known(key: str, value: Any, aliases: tuple[str, ...]) -> bool:
    _prefix(key)
    for alias in _named(key, value):
        if alias not in aliases:
            raise ImproperlyConfigured(
                f"HILO['SHARDS'][{key!r}] names {alias!r}, which is no key of "
                f"HILO['SHARDS']."
            )
    return True


def _shared_equally(aliases: Iterable[str]) -> Ranges:
    names = tuple(aliases)
    step = BUCKETS // len(names)
    return Ranges(tuple(step * place for place in range(len(names))), names)


def _ranges_of(given: dict[str, Any]) -> Ranges:
    if all(value is None for value in given.values()):
        return _shared_equally(given)
    pairs = sorted(
        (first, last, alias)
        for alias, value in given.items()
        for first, last in _pairs(alias, value)
    )
    expected = 0
    for first, last, alias in pairs:
        if first != expected:
            raise ImproperlyConfigured(
                f"HILO['SHARDS']: the range {first} to {last} of {alias!r} should "
                f"start at {expected}; the shards' ranges must cover 0 to "
                f"{BUCKETS - 1}, each bucket once."
            )
        expected = last + 1
    if expected != BUCKETS:
        raise ImproperlyConfigured(
            f"HILO['SHARDS']: the ranges end at {expected - 1}; they must cover 0 to "
            f"{BUCKETS - 1}."
        )
    return Ranges(
        tuple(first for first, _, _ in pairs), tuple(alias for _, _, alias in pairs)
    )


def _pairs(alias: str, value: Any) -> list[tuple[int, int]]:
    pairs = [value] if _is_pair(value) else value
    if isinstance(pairs, list | tuple) and all(map(_is_pair, pairs)):
        return list(pairs)
    raise ImproperlyConfigured(
        f"HILO['SHARDS'][{alias!r}] is {value!r}: buckets (first, last), a list of "
        f"such pairs, or None for all shards to share equally."
    )


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(type(bucket) is int for bucket in value)
        and 0 <= value[0] <= value[1]
    )
