"""The ranges that this process holds, by counter: memory only, no database.

One lock per counter, held for some microseconds and never over I/O. A child of a fork
starts with an empty pool and new locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from django_hilo._allocation import block as blocks
from django_hilo._allocation.block import MAX_SIZE, Block
from django_hilo._allocation.cache import Held, Share, Stock
from django_hilo._allocation.capacity import Ahead, Pace
from django_hilo._allocation.formats import Style
from django_hilo._database.connection import DatabaseKey
from django_hilo.counters.ranges import Reservation
from django_hilo.sources.base import Source


class CounterKey(NamedTuple):
    """Which counter, in which database."""

    database: DatabaseKey
    collection: str
    node_tag: str


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
        self._stock = Stock()
        # Explicit numbers that came while a range was on its way.
        self._explicit_since_refill: set[int] = set()
        # Up to where the row's Max is known to be.
        self._stored = 0
        # Whether the row was found under that, and not found higher since.
        self._is_low = False
        self._reservations = Pace()
        self._floors = Pace()

    def take(self, count: int) -> list[Share] | None:
        """Take ``count`` numbers, or none at all where fewer are left."""
        with self.lock:
            shares = self._stock.take(count)
            self._note_due(self._stock.uncut)
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
            block = self._stock.block(style, spent)
            if block is None:
                block = self._stock.following(style, spent) or self._cut_anew(style)
                if block is not None:
                    # When its first id is taken, as it is at once.
                    self._note_due(self._stock.left_at_start - 1)
            return block

    def cut_ahead(self) -> None:
        """Make the blocks that come next, so that no caller has to.

        One up to where the range after it is due, and one from there on.
        """
        with self.lock:
            style = self._stock.style
            if style is not None:
                first = self._cut(style)
                if first is not None and self._cut(style) is not None:
                    first.goes_on = True

    def _cut_anew(self, style: Style) -> Block | None:
        self._stock.recall()
        return self._cut(style)

    def _cut(self, style: Style) -> Block | None:
        # So that the block after it is asked for, and what is due noticed, just then.
        until_due = self._stock.uncut - 1 - self._due_at
        ends_there = self._due_at >= 0 and until_due > 0
        return self._stock.cut(style, until_due if ends_there else MAX_SIZE)

    def _note_due(self, left: int) -> None:
        self.is_due = self._due_at >= 0 and left <= self._due_at

    def recall(self) -> None:
        """Take back the numbers that wait to be given as ids of some style."""
        with self.lock:
            self._stock.recall()

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
            shares = self._stock.take(count) if count else None
            self._note_due(self._stock.uncut)
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
            self._stock.put(held)

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
            self._stock.drop(numbers)
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

    @property
    def stored(self) -> int:
        """Up to where the row's Max is known to be: reserved, and not returned."""
        return self._stored

    def is_found_low(self, met: int, stored: int) -> bool:
        """Whether the row has fallen under what is known of it, for the first time.

        ``met`` is what a reservation met in the row, and ``stored`` what was known
        before it. Another thread may raise or return meanwhile.
        """
        with self.lock:
            was_low, self._is_low = self._is_low, met < min(stored, self._stored)
            return self._is_low and not was_low

    def note_stored(self, number: int) -> None:
        """Note that the row's Max is at least this number."""
        with self.lock:
            self._stored = max(self._stored, number)

    def drain(self) -> Held | None:
        """Give up all ranges; return the newest, which alone can go back."""
        with self.lock:
            newest = max(
                self._stock.drain(),
                key=lambda held: held.reservation.range.high,
                default=None,
            )
            if newest is not None:
                # Max may fall as far at any moment: an explicit id over it that comes
                # meanwhile needs a floor.
                self._stored = min(self._stored, newest.next - 1)
            return newest

    def forget(self) -> None:
        """Give up all ranges, for a counter that is another one now."""
        with self.lock:
            self._stock.drain()

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
