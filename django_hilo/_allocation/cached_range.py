"""The unused numbers of reserved ranges; no locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from django_hilo.counters.ranges import Reservation


class Slice(NamedTuple):
    """Consecutive numbers, taken out of one reserved range."""

    low: int
    high: int
    reservation: Reservation
    # The mark of the transaction that a bound range belongs to.
    mark: Any = None


class Skipped(NamedTuple):
    """The numbers over ``met`` and under ``first``, which no process will be given.

    They belong to a reservation that found Max at ``met``, and gives ``first`` first.
    """

    met: int
    first: int


class CachedRange:
    """The unused end of a reserved range."""

    __slots__ = ("high", "mark", "next", "reservation")

    def __init__(self, reservation: Reservation, burnt: int = 0) -> None:
        low, high = reservation.range.low, reservation.range.high
        self.reservation = reservation
        # No number up to ``burnt`` is given.
        self.next = min(max(low, burnt + 1), high + 1)
        self.high = high
        self.mark: Any = None

    @property
    def left(self) -> int:
        return self.high - self.next + 1

    def has_any(self, numbers: Iterable[int]) -> bool:
        """Whether one of the numbers is among those left."""
        return any(self.next <= number <= self.high for number in numbers)

    def cut(self, count: int) -> Slice:
        """Take the next ``count`` numbers, or as many as are left."""
        low = self.next
        self.next = min(low + count, self.high + 1)
        return Slice(low, self.next - 1, self.reservation, self.mark)


def take_from(ranges: deque[CachedRange], count: int) -> list[Slice] | None:
    """Take ``count`` numbers out of the first ranges; None if fewer are left."""
    if ranges and ranges[0].left > count:
        return [ranges[0].cut(count)]
    # Add up no more ranges than needed: there may be one for each number.
    if not any(left >= count for left in accumulate(each.left for each in ranges)):
        return None
    slices = []
    while count:
        # A signal handler may have interrupted us before an empty range was removed.
        if ranges[0].left:
            taken = ranges[0].cut(count)
            slices.append(taken)
            count -= taken.high - taken.low + 1
        if not ranges[0].left:
            ranges.popleft()
    return slices
