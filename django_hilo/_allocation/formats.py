"""How numbers become ids, thousands at a time, by iterators in C.

The digits of three places are made once; only what stands before them differs, and that
once in a thousand numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, product, starmap
from typing import Any, NamedTuple, Protocol

from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import id_end, id_start

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

    def ids(self, low: int, count: int) -> list[Any]:
        """Return the ids of as many numbers, which takes less time."""


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
        parts = product(*self._parts(low, count))
        # Its first pair is a new tuple, those after it are the same one again.
        first = operator.add(*next(parts))
        return chain(iter((first,)), starmap(operator.add, parts))

    def ids(self, low: int, count: int) -> list[str]:
        heads, tails = self._parts(low, count)
        return [head + tail for head in heads for tail in tails]

    def _parts(self, low: int, count: int) -> tuple[list[str], tuple[str, ...]]:
        """Return what the ids start with, and what follows each of that."""
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
        return heads, tails


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

    def ids(self, low: int, count: int) -> list[int]:
        return list(range(low, low + count))


def ids(format: Format, low: int, high: int) -> list[Any]:
    """Return the ids of the numbers low to high."""
    found: list[Any] = []
    while low <= high:
        count = format.alike(low, high - low + 1)
        found += format.ids(low, count)
        low += count
    return found


@lru_cache(64)
def _tails(digits: int, end: str) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}}{end}" for number in range(_ALIKE))
