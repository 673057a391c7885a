"""How numbers become ids, a thousand at a time, by iterators in C.

The digits of three places are made once; of a thousand numbers only what stands before
them differs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, NamedTuple, Protocol

from django_hilo.identifiers import id_end, id_start
from django_hilo.ranges import Reservation

_ALIKE = 1000


class Format(Protocol):
    """Makes ids of consecutive numbers."""

    def last_alike(self, low: int) -> int:
        """Return up to where `alike` goes from ``low`` on."""

    def alike(self, low: int, high: int) -> Iterable[Any]:
        """Return the ids of the numbers, by an iterator that runs no Python code."""


class Style(Protocol):
    """How a caller wants ids to look; the rest comes from the range."""

    def of(self, reservation: Reservation) -> Format:
        """Return the format of a range's ids."""


class TextFormat(NamedTuple):
    """What stands around a number, and its digits with leading zeros (0: none)."""

    start: str
    end: str
    width: int

    def last_alike(self, low: int) -> int:
        return low - low % _ALIKE + _ALIKE - 1

    def alike(self, low: int, high: int) -> Iterable[str]:
        thousands, first = divmod(low, _ALIKE)
        digits, head = max(self.width, 1), self.start
        if thousands or self.width > 3:
            head += f"{thousands:0{max(self.width - 3, 1)}}"
            digits = 3
        tails = _tails(digits, self.end)[first : first + high - low + 1]
        return map(operator.add, repeat(head), tails)


class TextStyle(NamedTuple):
    """``orders/33-A``, or ``orders/0033-A`` with a width of 4."""

    collection: str
    separator: str
    shows_tag: bool
    width: int

    def of(self, reservation: Reservation) -> TextFormat:
        prefix = reservation.server_prefix
        return TextFormat(
            id_start(self.collection, self.separator, prefix),
            id_end(reservation.node_tag if self.shows_tag else ""),
            self.width,
        )


class Numbers(NamedTuple):
    """Ids that are the numbers themselves: style and format at once."""

    def of(self, reservation: Reservation) -> Numbers:
        return self

    def last_alike(self, low: int) -> int:
        return low + _ALIKE - 1

    def alike(self, low: int, high: int) -> Iterable[int]:
        return range(low, high + 1)


def ids(format: Format, low: int, high: int) -> list[Any]:
    """Return the ids of the numbers low to high."""
    parts = []
    while low <= high:
        last = min(high, format.last_alike(low))
        parts.append(format.alike(low, last))
        low = last + 1
    return list(chain.from_iterable(parts))


@lru_cache(64)
def _tails(digits: int, end: str) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}}{end}" for number in range(_ALIKE))
