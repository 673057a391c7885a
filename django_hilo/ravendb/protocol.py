"""RavenDB's protocol without a database: parameters, capacity, times and bodies.

The functions of parameters raise `Refusal` for what they cannot read.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple, Self

from django.http import QueryDict

from django_hilo._allocation.capacity import next_capacity
from django_hilo.counters.ranges import Capacity
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import MAX_NUMBER, check_collection, check_separator, shown

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
# .NET's round-trip format, with any zone or none (UTC). The fraction has 7 digits, less
# zeros at its end: RavenDB's Go client trims them.
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,7})?)"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


class Refusal(Exception):
    """An error answer; ``type`` is the name of .NET's exception."""

    def __init__(self, status: int, type: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.type, self.headers = status, type, headers


class NextRange(NamedTuple):
    """The parameters of ``hilo/next``."""

    tag: str
    last_size: int
    last_range_at: datetime | None
    separator: str  # "": the server's own
    last_max: int

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Read them from a query."""
        return cls(
            tag=collection_in(query, "tag"),
            last_size=integer_in(query, "lastBatchSize", 0),
            last_range_at=parse_last_range_at(_one(query, "lastRangeAt")),
            separator=_separator(query),
            last_max=integer_in(query, "lastMax", 0),
        )


def capacity_of(request: NextRange, now: datetime, least: int, most: int) -> Capacity:
    """Return how many numbers a client gets, by RavenDB's rule, and ours for waits.

    Within ``least`` to ``most`` in every case, where RavenDB believes any size.
    """
    last_size = min(request.last_size, most)
    if request.last_range_at is None:
        return Capacity(max(least, last_size), last_size, most)
    seconds = (now - request.last_range_at).total_seconds()
    return Capacity(next_capacity(last_size, seconds, least, most), last_size, most)


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


def error_body(url: str, type: str, message: str) -> dict[str, str]:
    """Return the body of an error; the clients show ``Error``."""
    return {"Url": url, "Type": type, "Message": message, "Error": f"{type}: {message}"}


def _bad_parameter(message: str) -> Refusal:
    return Refusal(400, "System.ArgumentException", message)


def _one(query: QueryDict, name: str) -> str:
    values = query.getlist(name)
    if len(values) > 1:
        raise _bad_parameter(f"{name!r} was given {len(values)} times; give it once.")
    return values[0] if values else ""


def collection_in(query: QueryDict, name: str, end: str = "") -> str:
    """Return the collection in a parameter, without ``end``."""
    text = _one(query, name)
    if not text.strip():
        raise _bad_parameter(
            f"{name!r} is missing; pass a collection, as in {name}=orders."
        )
    try:
        return check_collection(text.removesuffix(end))
    except InvalidDocumentId as error:
        raise _bad_parameter(f"{name}: {error}") from None


def integer_in(
    query: QueryDict,
    name: str,
    default: int | None = None,
    *,
    least: int = -MAX_NUMBER - 1,
) -> int:
    """Return the number in a parameter; an empty one has the default, if it has any."""
    text = _one(query, name).strip()
    if not text and default is not None:
        return default
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not least <= number <= MAX_NUMBER:
        bound = "-2^63" if least < 0 else least
        raise _bad_parameter(
            f"{name} must be an integer from {bound} to 2^63-1, not {shown(text)}."
        )
    return number


def boolean_in(query: QueryDict, name: str) -> bool:
    """Return whether a parameter is true; an empty one is not."""
    text = _one(query, name).strip().lower()
    if text not in ("", "true", "false"):
        raise _bad_parameter(f"{name} must be 'true' or 'false', not {shown(text)}.")
    return text == "true"


def _separator(query: QueryDict) -> str:
    separator = _one(query, "identityPartsSeparator").strip()
    try:
        return check_separator(separator) if separator else ""
    except InvalidDocumentId as error:
        raise _bad_parameter(f"identityPartsSeparator: {error}") from None
