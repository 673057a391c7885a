"""The ranges that this process holds, by counter: memory only, no database.

One lock per counter, held for some microseconds and never over I/O. A child of a fork
starts with an empty pool and new locks.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import NamedTuple

from django_hilo import blocks
from django_hilo.blocks import Block
from django_hilo.connections import DatabaseKey
from django_hilo.formats import Style
from django_hilo.ranges import Reservation, next_capacity
from django_hilo.sources.base import Source


class CounterKey(NamedTuple):
    """Which counter, in which database."""

    database: DatabaseKey
    collection: str
    node_tag: str


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


_SMALLEST_BLOCK = 16


class Ahead(NamedTuple):
    """When the range after one is to be fetched."""

    # Share of the one that is used then, over 0 and under 1.
    share: float
    # How long it took to fetch the one.
    seconds: float


class Pace:
    """How much to fetch next, from how long the last fetch lasted (RavenDB's rule)."""

    def __init__(self) -> None:
        self._last_size = 0
        self._last_at: float | None = None
        self._took = 0.0

    def next(self, first: int, least: int, most: int) -> int:
        """Return the next size: ``first`` where there was none, else least to most."""
        if self._last_at is None:
            return first
        seconds = time.monotonic() - self._last_at
        return next_capacity(self._last_size, seconds, least, most, self._took)

    def note(self, size: int, took: float = 0.0) -> None:
        """Note that this size was fetched now, in some seconds if they matter."""
        self._last_size, self._last_at, self._took = size, time.monotonic(), took


class Counter:
    """One counter as this process knows it."""

    def __init__(self, key: CounterKey) -> None:
        self.key = key
        # Where its ranges came from.
        self.source: Source | None = None
        self.lock = threading.Lock()
        self.refill: Future[None] | None = None
        # The newest refill that nobody waited for when it began.
        self.ahead: Future[None] | None = None
        # Whether the next range is to be fetched now, and how many numbers are left
        # then; -1: when none are.
        self.is_due = False
        self._due_at = -1
        # The highest number known to exist or to be reserved; no range starts under it.
        self.seen = 0
        # The highest explicit number: what a return must not make it forget.
        self._explicit = 0
        self._ranges: deque[Held] = deque()
        # Numbers of the first range, on their way out; it grows while nobody else asks.
        self._block: Block | None = None
        self._block_size = _SMALLEST_BLOCK // 2
        # Explicit numbers that came while a range was on its way.
        self._explicit_since_refill: set[int] = set()
        # Up to where the row's Max is known to be.
        self._stored = 0
        self._reservations = Pace()
        self._floors = Pace()

    def take(self, count: int) -> list[Share] | None:
        """Take ``count`` numbers, or none at all where fewer are left."""
        with self.lock:
            self._recall()
            shares = take_from(self._ranges, count)
            self._note_due(self._left())
            return shares

    def begin_refill(self, mine: Future[None]) -> Future[None] | None:
        """Let others wait for this future; return that of a thread that came first."""
        with self.lock:
            if self.refill is None:
                self.refill = mine
                return None
            return self.refill

    def end_refill(
        self, mine: Future[None], error: BaseException | None = None
    ) -> None:
        """Let nobody wait for this future any more, whoever ended it already."""
        with self.lock:
            if self.refill is mine:
                self.refill = None
            if not mine.done():
                mine.set_exception(error) if error else mine.set_result(None)

    def begin_ahead(self, mine: Future[None]) -> bool:
        """Let others wait for this future, if the next range is to be fetched now."""
        with self.lock:
            if not self.is_due or self.refill is not None:
                return False
            self.refill = self.ahead = mine
            self.is_due, self._due_at = False, -1
            return True

    def cut(self, style: Style, spent: Block | None = None) -> Block | None:
        """Return a block of ids of the next numbers, None where no numbers are left.

        The block that others take from already, where it is not the ``spent`` one.
        """
        with self.lock:
            block = self._block
            if block is not None and block is not spent and block.style == style:
                return block
            size = min(self._block_size * 2, blocks.MAX_SIZE)
            self._recall()
            if not self._ranges:
                return None
            held = self._ranges[0]
            alike = style.of(held.reservation).last_alike(held.next) - held.next + 1
            left = self._left() - 1
            if 0 <= self._due_at < left:
                # So that the next one is cut, and this noticed, just then.
                alike = min(alike, left - self._due_at)
            share = held.take(min(size, alike))
            self._block = Block(held.reservation, style, share.low, share.high)
            self._block_size = size
            self._note_due(left)
            return self._block

    def _left(self) -> int:
        return sum(held.left for held in self._ranges)

    def _note_due(self, left: int) -> None:
        self.is_due = self._due_at >= 0 and left <= self._due_at

    def recall(self) -> None:
        """Take back the numbers that wait to be given as ids of some style."""
        with self.lock:
            self._recall()

    def _recall(self) -> None:
        block, self._block = self._block, None
        if block is None:
            return
        left = block.end()
        if left:
            self._block_size = _SMALLEST_BLOCK // 2
        held = self._ranges[0]
        held.next -= left
        if not held.left:
            self._ranges.popleft()

    def add(
        self,
        reservations: Sequence[Reservation],
        capacity: int,
        count: int,
        ahead: Ahead | None = None,
    ) -> list[Share] | None:
        """Add committed ranges and take ``count`` numbers, if any, before others do."""
        with self.lock:
            for reservation in reservations:
                self._hold(Held(reservation), capacity, ahead.seconds if ahead else 0.0)
            self._explicit_since_refill.clear()
            if ahead is not None:
                size = sum(each.range.size for each in reservations)
                self._due_at = int(size * (1 - ahead.share))
            self._recall()
            shares = take_from(self._ranges, count) if count else None
            self._note_due(self._left())
            return shares

    def promote(self, held: Held, capacity: int) -> None:
        """Add what a transaction that has committed left of its range."""
        with self.lock:
            self._hold(held, capacity)

    def _hold(self, held: Held, capacity: int, took: float = 0.0) -> None:
        high = held.reservation.range.high
        self.seen = max(self.seen, high)
        self._stored = max(self._stored, high)
        self._reservations.note(capacity, took)
        if held.left and not held.would_give(self._explicit_since_refill):
            self._ranges.append(held)

    def next_capacity(self, least: int, most: int) -> int:
        """Return the capacity of the range to reserve now."""
        with self.lock:
            return self._reservations.next(least, least, most)

    def next_floor_step(self, least: int, most: int) -> int:
        """Return how far over an explicit number the floor is to be raised now.

        The first time 0; an import that goes on pays a write per step, not per row.
        """
        with self.lock:
            step = self._floors.next(0, least, most)
            self._floors.note(step)
            return step

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the ranges that would give one of these numbers."""
        with self.lock:
            self._recall()
            self._ranges = deque(
                held for held in self._ranges if not held.would_give(numbers)
            )
            if self.refill is not None:
                self._explicit_since_refill.update(numbers)

    def see(self, number: int) -> None:
        """Keep coming ranges over an explicit number."""
        with self.lock:
            self._explicit = max(self._explicit, number)
            self.seen = max(self.seen, number)

    def is_stored(self, number: int) -> bool:
        """Whether the row's Max is known to be at least this number."""
        return number <= self._stored

    def note_stored(self, number: int) -> None:
        """Note that the row's Max is at least this number."""
        with self.lock:
            self._stored = max(self._stored, number)

    def drain(self) -> Held | None:
        """Give up all ranges; return the newest, which alone can go back."""
        with self.lock:
            self._recall()
            ranges, self._ranges = self._ranges, deque()
            newest = max(
                ranges, key=lambda held: held.reservation.range.high, default=None
            )
            if newest is not None:
                # Max may fall as far at any moment: an explicit id over it that comes
                # meanwhile needs a floor.
                self._stored = min(self._stored, newest.next - 1)
            return newest

    def forget(self) -> None:
        """Give up all ranges, for a counter that is another one now."""
        with self.lock:
            self._recall()
            self._ranges.clear()

    def returned(self, high: int, last: int) -> None:
        """Note that the numbers over ``last`` went back."""
        with self.lock:
            if self.seen == high:
                self.seen = max(last, self._explicit)


class Pool:
    """The counters of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._counters: dict[CounterKey, Counter] = {}

    def counter(self, key: CounterKey) -> Counter:
        """Return the counter of a key, a new one the first time."""
        counter = self._counters.get(key)
        if counter is None:
            with self._lock:
                counter = self._counters.setdefault(key, Counter(key))
        return counter

    def has_drawn_from(self, key: CounterKey) -> bool:
        """Whether the counter is known to have had a row: numbers of it were seen."""
        counter = self._counters.get(key)
        return counter is not None and counter.seen > 0

    def counters(self, using: str | None = None) -> list[Counter]:
        """Return all counters, or those of one alias."""
        with self._lock:
            return [
                counter
                for key, counter in self._counters.items()
                if using in (None, key.database.alias)
            ]

    def forget_counter(self, key: CounterKey) -> None:
        """Drop all that is known of one counter."""
        with self._lock:
            counter = self._counters.pop(key, None)
        if counter is not None:
            counter.forget()

    def forget(self, using: str) -> None:
        """Drop all that is known of the counters of an alias."""
        for counter in self.counters(using):
            self.forget_counter(counter.key)

    def recall(self) -> None:
        """Make all ids anew that are formatted but not given yet."""
        for counter in self.counters():
            counter.recall()


_pool = Pool()


def current() -> Pool:
    """Return this process's pool; a new one after a fork that no hook has seen."""
    if _pool.pid != os.getpid():
        after_fork_in_child()
    return _pool


def after_fork_in_child() -> None:
    """Start with nothing of the parent's: no range, no lock."""
    global _pool
    blocks.after_fork_in_child()
    _pool = Pool()
