"""What RavenDB's clients send and expect: parameters, capacity, bodies; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from django_hilo.counters.ranges import next_capacity
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    check_collection,
    check_separator,
    shown,
)

# What the name of an identity ends in, given or not.
IDENTITY_END = "|"

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
# .NET's round-trip format: exactly 7 digits of a fraction, any zone or none (UTC).
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})[0-9]"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


class Query(Protocol):
    """The part of a QueryDict that is read here."""

    def getlist(self, key: str) -> list[str]:
        """Return all values of a parameter."""
        ...


class Refusal(Exception):
    """An answer other than the one asked for; ``type`` is the name of .NET's error."""

    def __init__(
        self,
        status: int,
        type: str,
        message: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.headers = headers or {}


class NextRange(NamedTuple):
    """The parameters of ``hilo/next``."""

    tag: str
    last_size: int
    last_range_at: datetime | None
    separator: str  # "": the server's own
    last_max: int

    @classmethod
    def read(cls, query: Query) -> NextRange:
        """Read them, or raise `Refusal`."""
        return cls(
            tag=_collection(query, "tag"),
            last_size=_integer(query, "lastBatchSize", 0),
            last_range_at=parse_last_range_at(_one(query, "lastRangeAt")),
            separator=_separator(query),
            last_max=_integer(query, "lastMax", 0),
        )


class ReturnedRange(NamedTuple):
    """The parameters of ``hilo/return``."""

    tag: str
    end: int
    last: int

    @classmethod
    def read(cls, query: Query) -> ReturnedRange:
        """Read them, or raise `Refusal`."""
        return cls(
            tag=_collection(query, "tag"),
            end=_integer(query, "end"),
            last=_integer(query, "last"),
        )


class NextIdentity(NamedTuple):
    """The parameter of ``identity/next``."""

    collection: str

    @classmethod
    def read(cls, query: Query) -> NextIdentity:
        """Read it, or raise `Refusal`."""
        return cls(collection=_collection(query, "name", IDENTITY_END))


class SeededIdentity(NamedTuple):
    """The parameters of ``identity/seed``."""

    collection: str
    value: int
    force: bool

    @classmethod
    def read(cls, query: Query) -> SeededIdentity:
        """Read them, or raise `Refusal`."""
        return cls(
            collection=_collection(query, "name", IDENTITY_END),
            value=_integer(query, "value", least=0),
            force=_boolean(query, "force"),
        )


class IdentityPage(NamedTuple):
    """The parameters of ``debug/identities``."""

    start: int
    size: int

    @classmethod
    def read(cls, query: Query) -> IdentityPage:
        """Read them, or raise `Refusal`."""
        return cls(
            start=_integer(query, "start", 0, least=0),
            size=_integer(query, "pageSize", MAX_NUMBER, least=0),
        )


def capacity_of(request: NextRange, now: datetime, least: int, most: int) -> int:
    """Return how many numbers a client gets, by RavenDB's rule.

    Within ``least`` to ``most`` in every case, where RavenDB believes any size.
    """
    last_size = min(request.last_size, most)
    if request.last_range_at is None:
        return max(least, last_size)
    seconds = (now - request.last_range_at).total_seconds()
    return next_capacity(last_size, seconds, least, most)


def parse_last_range_at(text: str) -> datetime | None:
    """Return the time of a client's last range, ``None`` for what is no such time."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return datetime.fromisoformat(f"{match[1]}{match[2] or 'Z'}")
    except ValueError:
        return None


def format_last_range_at(moment: datetime) -> str:
    """Return a time with 7 digits and Z; with less both official clients fail."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds')}0Z"


def range_body(
    prefix: str, low: int, high: int, server_tag: str, now: datetime
) -> dict[str, Any]:
    """Return the body of an answer to ``hilo/next``."""
    return {
        "Prefix": prefix,
        "Low": low,
        "High": high,
        "LastSize": high - low + 1,
        "ServerTag": server_tag,
        "LastRangeAt": format_last_range_at(now),
    }


def topology_body(url: str, database: str, server_tag: str) -> dict[str, Any]:
    """Return the body of an answer to ``topology``: this server alone."""
    node = {
        "Url": url,
        "ClusterTag": server_tag,
        "Database": database,
        "ServerRole": "Member",
    }
    return {"Nodes": [node], "Etag": 1}


def identities_body(counters: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the body of an answer to ``debug/identities``."""
    return {f"{collection}{IDENTITY_END}": last for collection, last in counters}


def error_body(url: str, type: str, message: str) -> dict[str, str]:
    """Return the body of an error; the clients show ``Error``."""
    return {
        "Url": url,
        "Type": type,
        "Message": message,
        "Error": f"{type}: {message}",
    }


def bad_parameter(message: str) -> Refusal:
    """Return the refusal of a parameter."""
    return Refusal(400, "System.ArgumentException", message)


def _one(query: Query, name: str) -> str:
    values = query.getlist(name)
    if len(values) > 1:
        raise bad_parameter(f"{name!r} was given {len(values)} times; give it once.")
    return values[0] if values else ""


def _collection(query: Query, name: str, end: str = "") -> str:
    text = _one(query, name)
    if not text.strip():
        raise bad_parameter(
            f"{name!r} is missing; name a collection, as in {name}=orders."
        )
    try:
        return check_collection(text.removesuffix(end))
    except InvalidDocumentId:
        raise bad_parameter(
            f"The {name} {shown(text)} must start with a letter A-Z or a-z, go on with "
            f"letters, digits, '_' or '-', and have at most {MAX_COLLECTION_LENGTH} "
            f"characters."
        ) from None


def _separator(query: Query) -> str:
    separator = _one(query, "identityPartsSeparator").strip()
    try:
        return check_separator(separator) if separator else ""
    except InvalidDocumentId:
        raise bad_parameter(
            f"identityPartsSeparator {shown(separator)} must be one ASCII punctuation "
            f"character, none of '_', '-', '|', '$'; '/' is the usual one."
        ) from None


def _integer(
    query: Query,
    name: str,
    default: int | None = None,
    *,
    least: int = -MAX_NUMBER - 1,
) -> int:
    text = _one(query, name).strip()
    if not text and default is not None:
        return default
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not least <= number <= MAX_NUMBER:
        bound = "-2^63" if least < 0 else least
        raise bad_parameter(
            f"{name} must be a whole number from {bound} to 2^63-1, not {shown(text)}."
        )
    return number


def _boolean(query: Query, name: str) -> bool:
    text = _one(query, name).strip().lower()
    if text not in ("", "true", "false"):
        raise bad_parameter(f"{name} must be 'true' or 'false', not {shown(text)}.")
    return text == "true"
