"""What a process holds of ranges, to be taken as numbers or as ids; no locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from django_hilo._allocation import block as blocks
from django_hilo._allocation.block import Block
from django_hilo._allocation.formats import Style
from django_hilo.counters.ranges import Reservation

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


class _Cut:
    """Numbers of a range on their way out."""

    __slots__ = ("block", "held", "kept", "size")

    def __init__(self, block: Block, held: Held, size: int) -> None:
        self.block = block
        self.held = held
        self.size = size
        # Those that it gave no more.
        self.kept = 0

    def end(self) -> int:
        """Give no more numbers; return how many were left."""
        self.kept += self.block.end()
        return self.kept


class Stock:
    """What is left of some ranges, in the order in which they came."""

    def __init__(self) -> None:
        self._ranges: deque[Held] = deque()
        # The first is that which ids are taken from, those after it were made ahead.
        self._cuts: deque[_Cut] = deque()
        # It grows while nobody else asks.
        self._block_size = _SMALLEST_BLOCK

    @property
    def left_at_start(self) -> int:
        """How many numbers were left when ids were first taken from the block."""
        left = self.uncut
        for cut in self._cuts:
            left += cut.size
        return left

    @property
    def uncut(self) -> int:
        """How many numbers are in no block."""
        left = 0
        for held in self._ranges:
            left += held.left
        return left

    @property
    def style(self) -> Style | None:
        """The style of the ids that are asked for; None where numbers are."""
        return self._cuts[0].block.style if self._cuts else None

    def put(self, held: Held) -> None:
        """Add a range, to be used after those before it."""
        self._ranges.append(held)

    def take(self, count: int) -> list[Share] | None:
        """Take ``count`` numbers, or none at all where fewer are left."""
        self.recall()
        return take_from(self._ranges, count)

    def block(self, style: Style, spent: Block | None) -> Block | None:
        """Return the block that others take ids from, if it is not the spent one."""
        block = self._cuts[0].block if self._cuts else None
        is_right = block is not None and block is not spent and block.style == style
        return block if is_right else None

    def following(self, style: Style, spent: Block | None) -> Block | None:
        """Return the block that was made ahead, where the one before it is spent."""
        if len(self._cuts) < 2 or self._cuts[0].block is not spent:
            return None
        # Another thread may still take from what this one calls spent.
        if self._cuts[1].block.style != style or self._cuts[0].end():
            return None
        self._cuts.popleft()
        return self._cuts[0].block

    def cut(self, style: Style, most: int) -> Block | None:
        """Add a block of up to ``most`` ids; return None where no numbers are left.

        Ids are taken from it when those before it are spent.
        """
        held = next((held for held in self._ranges if held.left), None)
        if held is None:
            return None
        format, size = style.of(held.reservation), self._block_size
        share = held.take(format.alike(held.next, min(size, most, held.left)))
        block = Block(format, style, share.low, share.high)
        self._cuts.append(_Cut(block, held, share.high - share.low + 1))
        self._block_size = min(size * 2, blocks.MAX_SIZE)
        return block

    def recall(self) -> None:
        """Take back the numbers that wait to be given as ids of some style."""
        # The last ones first, and the one that callers have stays known until its end:
        # what a signal's handler breaks off leaves a gap, no more.
        while self._cuts:
            cut = self._cuts[-1]
            left = cut.size if len(self._cuts) > 1 else cut.end()
            self._cuts.pop()
            if left:
                cut.held.next -= left
                self._block_size = _SMALLEST_BLOCK
        while self._ranges and not self._ranges[0].left:
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
