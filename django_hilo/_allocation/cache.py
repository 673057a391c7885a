"""The unused numbers of a counter's ranges, taken as numbers or as ids; no locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from django_hilo._allocation.block import MAX_SIZE, Style, block_of, end_block
from django_hilo.counters.ranges import Reservation

_SMALLEST_BLOCK = 16


class Slice(NamedTuple):
    """Consecutive numbers, taken out of one reserved range."""

    low: int
    high: int
    reservation: Reservation


class CachedRange:
    """The unused end of a reserved range."""

    __slots__ = ("next", "reservation")

    def __init__(self, reservation: Reservation) -> None:
        self.reservation = reservation
        self.next = reservation.range.low

    @property
    def left(self) -> int:
        return self.reservation.range.high - self.next + 1

    def has_any(self, numbers: Iterable[int]) -> bool:
        """Whether one of the numbers is among those left."""
        high = self.reservation.range.high
        return any(self.next <= number <= high for number in numbers)

    def take(self, count: int) -> Slice:
        """Take the next ``count`` numbers, or as many as are left."""
        low = self.next
        self.next = min(low + count, self.reservation.range.high + 1)
        return Slice(low, self.next - 1, self.reservation)


def take_from(ranges: deque[CachedRange], count: int) -> list[Slice] | None:
    """Take ``count`` numbers out of the first ranges; None if fewer are left."""
    if ranges and ranges[0].left > count:
        return [ranges[0].take(count)]
    # Add up no more ranges than needed: there may be one for each number.
    if not any(left >= count for left in accumulate(each.left for each in ranges)):
        return None
    slices = []
    while count:
        # A signal handler may have interrupted us before an empty range was removed.
        if ranges[0].left:
            taken = ranges[0].take(count)
            slices.append(taken)
            count -= taken.high - taken.low + 1
        if not ranges[0].left:
            ranges.popleft()
    return slices


class _Block(NamedTuple):
    """Ids that callers are taking now."""

    ids: Iterator[Any]
    style: Style
    source: CachedRange


class Cache:
    """The unused ranges of a counter, in the order in which they came."""

    def __init__(self) -> None:
        self._ranges: deque[CachedRange] = deque()
        self._block: _Block | None = None
        # Doubled for each block that is used up, so that no long list is made for a
        # caller who asks for numbers in between.
        self._block_size = _SMALLEST_BLOCK

    @property
    def left(self) -> int:
        """How many numbers are left, without those in the block."""
        return sum(each.left for each in self._ranges)

    def put(self, cached: CachedRange) -> None:
        """Add a range, to be used after those before it."""
        self._ranges.append(cached)

    def take(self, count: int) -> list[Slice] | None:
        """Take ``count`` numbers; None if fewer are left."""
        self.recall()
        return take_from(self._ranges, count)

    def block(self, style: Style, spent: Iterator[Any] | None) -> Iterator[Any] | None:
        """Return the ids that others are taking, if they are not the spent ones."""
        block = self._block
        if block is None or block.ids is spent or block.style != style:
            return None
        return block.ids

    def cut(self, style: Style, most: int) -> Iterator[Any] | None:
        """Return up to ``most`` ids of the next numbers; None if no number is left.

        Call `recall` first.
        """
        if not self._ranges:
            return None
        source, size = self._ranges[0], self._block_size
        format = style.of(source.reservation)
        ids, count = format.block(source.next, min(size, most, source.left))
        source.take(count)
        ids = block_of(ids)
        self._block = _Block(ids, style, source)
        self._block_size = min(size * 2, MAX_SIZE)
        return ids

    def recall(self) -> None:
        """Take back the numbers in the block."""
        if self._block is not None:
            # If a signal handler interrupts this, the numbers become a gap.
            left = end_block(self._block.ids)
            source, self._block = self._block.source, None
            if left:
                source.next -= left
                self._block_size = _SMALLEST_BLOCK
        while self._ranges and not self._ranges[0].left:
            self._ranges.popleft()

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the ranges that contain one of these numbers."""
        self.recall()
        self._ranges = deque(each for each in self._ranges if not each.has_any(numbers))

    def drain(self) -> list[CachedRange]:
        """Give up all ranges."""
        self.recall()
        ranges, self._ranges = self._ranges, deque()
        return list(ranges)
