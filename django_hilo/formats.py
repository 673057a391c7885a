"""How numbers become ids, thousands at a time, by iterators in C.

The digits of three places are made once; only what stands before them differs, and that
once in a thousand numbers.
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

    def alike(self, low: int, most: int) -> int:
        """Return how many ids, up to ``most``, `iterator` can make from ``low`` on."""

    def iterator(self, low: int, count: int) -> Iterable[Any]:
        """Return the ids of the numbers, by an iterator whose steps are atomic.

        None may run Python code, nor allocate what the garbage collector knows: up to
        Python 3.11 any such allocation may collect, and finalizers let others run.
        """


class Style(Protocol):
    """How a caller wants ids to look; the rest comes from the range."""

    def of(self, reservation: Reservation) -> Format:
        """Return the format of a range's ids."""


class TextFormat(NamedTuple):
    """What stands around a number, and its digits with leading zeros (0: none)."""

    start: str
    end: str
    width: int

    def alike(self, low: int, most: int) -> int:
        past = low % _ALIKE
        if most >= _ALIKE and not past:
            return most - most % _ALIKE
        return min(most, _ALIKE - past)

    def iterator(self, low: int, count: int) -> Iterable[str]:
        thousands, first = divmod(low, _ALIKE)
        heads, digits = [self.start], max(self.width, 1)
        if thousands or self.width > 3:
            zeros, digits = f"0{max(self.width - 3, 1)}", 3
            last = thousands + (count - 1) // _ALIKE
            heads = [
                f"{self.start}{each:{zeros}}" for each in range(thousands, last + 1)
            ]
        tails = _tails(digits, self.end)
        if count < _ALIKE:
            tails = tails[first : first + count]
        return chain.from_iterable(
            [map(operator.add, repeat(head), tails) for head in heads]
        )


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

    def alike(self, low: int, most: int) -> int:
        return most

    def iterator(self, low: int, count: int) -> Iterable[int]:
        return range(low, low + count)


def ids(format: Format, low: int, high: int) -> list[Any]:
    """Return the ids of the numbers low to high."""
    parts = []
    while low <= high:
        count = format.alike(low, high - low + 1)
        parts.append(format.iterator(low, count))
        low += count
    return list(chain.from_iterable(parts))


@lru_cache(64)
def _tails(digits: int, end: str) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}}{end}" for number in range(_ALIKE))
