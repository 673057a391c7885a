"""The ranges that this process holds, by counter: memory only, no database.

Each counter has one lock, which is held for microseconds and never over I/O. The child
of a fork starts with an empty pool and new locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from django_hilo._allocation import block as blocks
from django_hilo._allocation.block import MAX_SIZE, Style
from django_hilo._allocation.cache import Cache, CachedRange, Slice
from django_hilo._allocation.capacity import AdaptiveCapacity, Ahead
from django_hilo._database.connection import DatabaseKey
from django_hilo.counters.ranges import Reservation
from django_hilo.exceptions import NestedReservation
from django_hilo.sources.base import Source


class CounterKey(NamedTuple):
    """Which counter, in which database."""

    database: DatabaseKey
    collection: str
    node_tag: str


class Refill(Future[None]):
    """A reservation under way, which other threads wait for."""

    # The thread that reserves, by its identifier.
    owner: int | None = None


class Counter:
    """One counter as this process knows it."""

    def __init__(self, key: CounterKey) -> None:
        self.key = key
        # Where its ranges came from.
        self.source: Source | None = None
        # Re-entrant, because only such a lock knows the thread that holds it.
        self._lock = threading.RLock()
        self.refill: Refill | None = None
        # The newest refill that nobody waited for when it began.
        self.ahead: Refill | None = None
        # Whether to fetch the next range now, and how many numbers are left when that
        # is due; -1: when none are.
        self.is_due = False
        self._due_at = -1
        # The highest number known to exist or to be reserved; ranges start over it.
        self.seen = 0
        # The highest explicit number, which a return must not forget.
        self._explicit = 0
        self._cache = Cache()
        # Explicit numbers that came while a range was on its way.
        self._explicit_since_refill: set[int] = set()
        # The row's Max is known to be at least this.
        self.stored = 0
        # Whether the row was found under that, and not found higher since.
        self._is_low = False
        self.capacity = AdaptiveCapacity()
        # How far above an explicit number to raise the floor: a longer import pays one
        # write per step, not per row.
        self.floor_step = AdaptiveCapacity()

    def locked(self) -> threading.RLock:
        """Return the lock, for a ``with`` block.

        Raises `NestedReservation` in a thread that holds it already.
        """
        # Not a flag of ours, which a signal handler could leave set.
        if self._lock._is_owned():  # type: ignore[attr-defined]  # threading uses it, too
            raise NestedReservation(
                f"This thread is taking a number of {self.key.collection!r} already, "
                f"and was asked for another one meanwhile: by a finalizer (__del__) or "
                f"a signal handler. Take ids elsewhere."
            )
        return self._lock

    def take(self, count: int) -> list[Slice] | None:
        """Take ``count`` numbers; None if fewer are left."""
        with self.locked():
            slices = self._cache.take(count)
            self._note_due()
            return slices

    def begin_refill(self, mine: Refill) -> Refill | None:
        """Let others wait for this refill; return that of a thread that came first."""
        with self.locked():
            if self.refill is None:
                self.refill = mine
                return None
            return self.refill

    def end_refill(self, mine: Refill, error: BaseException | None = None) -> None:
        """Let nobody wait for this refill any more; it may have ended already."""
        with self.locked():
            if self.refill is mine:
                self.refill = None
            if not mine.done():
                mine.set_exception(error) if error else mine.set_result(None)

    def begin_ahead(self, mine: Refill) -> bool:
        """Let others wait for this refill, if the next range is due now."""
        with self.locked():
            if not self.is_due or self.refill is not None:
                return False
            self.refill = self.ahead = mine
            self.is_due, self._due_at = False, -1
            return True

    def cut(self, style: Style, spent: Iterator[Any] | None) -> Iterator[Any] | None:
        """Return an iterator over the next ids; None if no number is left.

        All callers get the same iterator until they say that it is ``spent``.
        """
        with self.locked():
            ids = self._cache.block(style, spent)
            if ids is None:
                self._cache.recall()
                most, is_due = MAX_SIZE, False
                if self._due_at >= 0:
                    # The caller takes the first id at once. The block ends where the
                    # next range is due, because only the next cut notices it.
                    until_due = self._cache.left - 1 - self._due_at
                    is_due = until_due <= 0
                    most = MAX_SIZE if is_due else until_due
                ids = self._cache.cut(style, most)
                self.is_due = is_due and ids is not None
            return ids

    def _note_due(self) -> None:
        self.is_due = self._due_at >= 0 and self._cache.left <= self._due_at

    def recall(self) -> None:
        """Take back the numbers whose ids are made but not taken."""
        with self.locked():
            self._cache.recall()

    def add(
        self,
        reservations: Sequence[Reservation],
        capacity: int,
        count: int,
        ahead: Ahead | None = None,
    ) -> list[Slice] | None:
        """Add committed ranges and take ``count`` numbers, if any, before others do."""
        with self.locked():
            for reservation in reservations:
                cached = CachedRange(reservation)
                self._put(cached, capacity, ahead.seconds if ahead else 0.0)
            self._explicit_since_refill.clear()
            if ahead is not None:
                size = sum(each.range.size for each in reservations)
                self._due_at = int(size * (1 - ahead.share))
            slices = self._cache.take(count) if count else None
            self._note_due()
            return slices

    def promote(self, cached: CachedRange, capacity: int) -> None:
        """Add what a transaction that has committed left of its range."""
        with self.locked():
            self._put(cached, capacity)

    def _put(self, cached: CachedRange, capacity: int, took: float = 0.0) -> None:
        high = cached.reservation.range.high
        self.seen = max(self.seen, high)
        self.stored = max(self.stored, high)
        self.capacity.note(capacity, took)
        since = self._explicit_since_refill
        if cached.left and not (since and cached.has_any(since)):
            self._cache.put(cached)

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the ranges that contain one of these numbers."""
        with self.locked():
            self._cache.drop(numbers)
            if self.refill is not None:
                self._explicit_since_refill.update(numbers)

    def see(self, number: int) -> None:
        """Keep later ranges above an explicit number."""
        with self.locked():
            self._explicit = max(self._explicit, number)
            self.seen = max(self.seen, number)

    def is_stored(self, number: int) -> bool:
        """Whether the row's Max is known to be at least this number."""
        return number <= self.stored

    def is_found_low(self, met: int, stored: int) -> bool:
        """Whether the row fell under the Max that is known, for the first time.

        ``met`` is the Max that a reservation found, and ``stored`` the one known
        before it. Another thread may raise it or return a range meanwhile.
        """
        with self.locked():
            was_low, self._is_low = self._is_low, met < min(stored, self.stored)
            return self._is_low and not was_low

    def note_stored(self, number: int) -> None:
        """Note that the row's Max is at least this number."""
        with self.locked():
            self.stored = max(self.stored, number)

    def drain(self) -> CachedRange | None:
        """Give up all ranges; return the newest one, which alone can be returned."""
        with self.locked():
            newest = max(
                self._cache.drain(),
                key=lambda cached: cached.reservation.range.high,
                default=None,
            )
            if newest is not None:
                # Max may fall to it at any moment, so an explicit id above it that
                # comes meanwhile needs a floor.
                self.stored = min(self.stored, newest.next - 1)
            return newest

    def returned(self, high: int, last: int) -> None:
        """Note that the numbers over ``last`` were returned."""
        with self.locked():
            if self.seen == high:
                self.seen = max(last, self._explicit)


class Pool:
    """The counters of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        # Without a lock: each access is one step of a dict.
        self._counters: dict[CounterKey, Counter] = {}

    def counter(self, key: CounterKey) -> Counter:
        """Return the counter of a key, a new one the first time."""
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters.setdefault(key, Counter(key))
        return counter

    def has_drawn_from(self, key: CounterKey) -> bool:
        """Whether numbers of a counter were seen, so that it has had a row."""
        counter = self._counters.get(key)
        return counter is not None and counter.seen > 0

    def counters(self, using: str | None = None) -> list[Counter]:
        """Return all counters, or those of one alias."""
        return [
            counter
            for counter in list(self._counters.values())
            if using in (None, counter.key.database.alias)
        ]

    def forget_counter(self, key: CounterKey) -> None:
        """Drop all that is known of one counter."""
        counter = self._counters.pop(key, None)
        if counter is not None:
            counter.drain()

    def forget(self, using: str) -> None:
        """Drop all that is known of the counters of an alias."""
        for counter in self.counters(using):
            self.forget_counter(counter.key)


_pool = Pool()


def current() -> Pool:
    """Return this process's pool; a new one after a fork that ran no hook."""
    if _pool.pid != os.getpid():
        after_fork_in_child()
    return _pool


def after_fork_in_child() -> None:
    """Start with none of the parent's ranges and locks."""
    global _pool
    blocks.after_fork_in_child()
    _pool = Pool()
