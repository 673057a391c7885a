"""What a process holds of ranges, to be taken as numbers or as ids; no locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from django_hilo import blocks
from django_hilo.blocks import Block
from django_hilo.formats import Style
from django_hilo.ranges import Reservation

_SMALLEST_BLOCK = 16


class Share(NamedTuple):
    """Consecutive numbers, taken out of one reserved range."""

    low: int
    high: int
    reservation: Reservation


class Held:
    """What is left of a reserved range."""

    __slots__ = ("next", "reservation")

    def __init__(self, reservation: Reservation) -> None:
        self.reservation = reservation
        self.next = reservation.range.low

    @property
    def left(self) -> int:
        return self.reservation.range.high - self.next + 1

    def would_give(self, numbers: Iterable[int]) -> bool:
        """Whether one of the numbers is among what is left."""
        high = self.reservation.range.high
        return any(self.next <= number <= high for number in numbers)

    def take(self, count: int) -> Share:
        """Take the next ``count`` numbers, or as many as are left."""
        low = self.next
        self.next += min(count, self.left)
        return Share(low, self.next - 1, self.reservation)


def take_from(ranges: deque[Held], count: int) -> list[Share] | None:
    """Take ``count`` numbers out of the first ranges, or none where fewer are left."""
    if ranges and ranges[0].left > count:
        return [ranges[0].take(count)]
    # All of them where they are too few only: there may be a range a number.
    if not any(left >= count for left in accumulate(held.left for held in ranges)):
        return None
    shares = []
    while count:
        # None left, where a signal's handler raised before the range was removed.
        if ranges[0].left:
            share = ranges[0].take(count)
            shares.append(share)
            count -= share.high - share.low + 1
        if not ranges[0].left:
            ranges.popleft()
    return shares


class Stock:
    """What is left of some ranges, in the order in which they came."""

    def __init__(self) -> None:
        self._ranges: deque[Held] = deque()
        # Numbers of the first range, on their way out; it grows while nobody else asks.
        self._block: Block | None = None
        self._block_size = _SMALLEST_BLOCK

    @property
    def left(self) -> int:
        """How many numbers are in no block yet."""
        return sum(held.left for held in self._ranges)

    def put(self, held: Held) -> None:
        """Add a range, to be used after those before it."""
        self._ranges.append(held)

    def take(self, count: int) -> list[Share] | None:
        """Take ``count`` numbers, or none at all where fewer are left."""
        self.recall()
        return take_from(self._ranges, count)

    def block(self, style: Style, spent: Block | None) -> Block | None:
        """Return the block that others take ids from, if it is not the spent one."""
        block = self._block
        is_right = block is not None and block is not spent and block.style == style
        return block if is_right else None

    def cut(self, style: Style, most: int) -> Block | None:
        """Return a new block of up to ``most`` ids; None where no numbers are left."""
        self.recall()
        if not self._ranges:
            return None
        held, size = self._ranges[0], self._block_size
        most = min(size, most, held.left)
        share = held.take(style.of(held.reservation).alike(held.next, most))
        self._block = Block(held.reservation, style, share.low, share.high)
        self._block_size = min(size * 2, blocks.MAX_SIZE)
        return self._block

    def recall(self) -> None:
        """Take back the numbers that wait to be given as ids of some style."""
        block, self._block = self._block, None
        if block is None:
            return
        left = block.end()
        if left:
            self._block_size = _SMALLEST_BLOCK
        held = self._ranges[0]
        held.next -= left
        if not held.left:
            self._ranges.popleft()

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the ranges that would give one of these numbers."""
        self.recall()
        self._ranges = deque(
            held for held in self._ranges if not held.would_give(numbers)
        )

    def drain(self) -> list[Held]:
        """Give up all ranges."""
        self.recall()
        ranges, self._ranges = self._ranges, deque()
        return list(ranges)
