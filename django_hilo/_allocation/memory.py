"""What this process holds of each counter: memory only, no database.

Each memory has one lock, which is held for microseconds and never over I/O. The child
of a fork starts with an empty pool and new locks.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from django_hilo._allocation.cached_range import CachedRange, Skipped, Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._database.identity import DatabaseKey
from django_hilo._lock import Lock
from django_hilo.counters.ranges import Reservation
from django_hilo.counters.source import Source
from django_hilo.exceptions import NestedReservation

# Which counter, in which database: the key of the source is the rest of it.
Key = tuple[DatabaseKey, str, str]


class Refill:
    """A reservation under way, which other threads wait for."""

    def __init__(self) -> None:
        # The thread that reserves, by its identifier.
        self.owner = threading.get_ident()
        self.is_done = False
        # Whether each thread that waited has been woken.
        self.is_over = False
        self.error: BaseException | None = None
        # Explicit numbers that came while its range was on its way.
        self.explicit: set[int] = set()
        # One lock for each waiting thread. A signal handler that raises during a wait
        # could leave a shared lock locked, such as that of a Future.
        self._waiting: list[threading.Lock] = []

    def wait(self, timeout: float) -> bool:
        """Wait until it is done; return whether it is."""
        mine = threading.Lock()
        mine.acquire()
        self._waiting.append(mine)
        # Only now: end() sets it before it wakes the listed threads.
        if not self.is_done:
            mine.acquire(timeout=timeout)
        return self.is_done

    def end(self, error: BaseException | None = None) -> None:
        """Wake the threads that wait; again if a signal handler interrupted that."""
        self.error = error or self.error
        self.is_done = True
        for each in self._waiting:
            with suppress(RuntimeError):  # it was released already
                each.release()
        self.is_over = True


# How many ranges later the object of a rolled-back row may still keep its id.
_MOST_SKIPPED = 1_000


class Memory:
    """One counter as this process knows it."""

    def __init__(self, key: Key, clock: Callable[[], float] | None = None) -> None:
        self.key = key
        # Where its ranges came from; None: look at the rows before the next one.
        self.source: Source | None = None
        self._lock = Lock()
        self._ranges: deque[CachedRange] = deque()  # in the order in which they came
        self.refill: Refill | None = None
        # The highest number known to exist or to be reserved; ranges start over it. The
        # next two are never higher.
        self.seen = 0
        # The highest explicit number, which a return must not forget.
        self.explicit = 0
        # The highest number that was given out of a bound range, or is an object's
        # whose row was rolled back.
        self.burnt = 0
        # What the newest reservations skipped, which are committed.
        self.skipped: deque[Skipped] = deque(maxlen=_MOST_SKIPPED)
        # The row's Max is known to be at least this.
        self.stored = 0
        self.capacity = AdaptiveCapacity(clock)

    @cached_property
    def floor_step(self) -> AdaptiveCapacity:
        """How far to raise the floor above an explicit number, not to do so often."""
        return AdaptiveCapacity()

    @property
    def database(self) -> DatabaseKey:
        """The database that has the counter."""
        return self.key[0]

    def locked(self) -> Lock:
        """Return the lock; raises `NestedReservation` in a thread that has it."""
        if self._lock.is_held_here():
            collection = self.key[1]
            raise NestedReservation.amid(f"taking a number of {collection!r}")
        return self._lock

    def take(self, count: int) -> list[Slice] | None:
        """Take ``count`` numbers; None if fewer are left."""
        with self.locked():
            return take_from(self._ranges, count)

    def take_one(self) -> tuple[int, Reservation] | None:
        """Take one number; None if none is left."""
        with self.locked():
            while self._ranges:
                cached = self._ranges[0]
                number = cached.next
                if number <= cached.high:
                    cached.next = number + 1
                    return number, cached.reservation
                self._ranges.popleft()
            return None

    def begin_refill(self, mine: Refill) -> Refill | None:
        """Let others wait for this refill; return that of a thread that came first."""
        with self.locked():
            first = self.refill
            if first is None:
                self.refill = mine
            return first

    def end_refill(self, mine: Refill, error: BaseException | None = None) -> None:
        """Let nobody wait for this refill any more; it may have ended already."""
        with self.locked():
            if self.refill is mine:
                self.refill = None
        mine.end(error)

    def add(
        self,
        ranges: Sequence[CachedRange],
        capacity: int | None = None,
        count: int = 0,
        skipped: Iterable[Skipped] = (),
    ) -> list[Slice] | None:
        """Add ranges, and take ``count`` numbers before others do."""
        with self.locked():
            since = self.refill.explicit if self.refill else ()
            for cached in ranges:
                self.seen = max(self.seen, cached.high)
                self.stored = max(self.stored, cached.high)
                if cached.left and not (since and cached.has_any(since)):
                    self._ranges.append(cached)
            self.skipped.extend(skipped)
            if capacity is not None:
                self.capacity.note(capacity)
            return take_from(self._ranges, count) if count else None

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the ranges that contain one of these numbers."""
        with self.locked():
            held = self._ranges
            self._ranges = deque(each for each in held if not each.has_any(numbers))
            if len(self._ranges) < len(held):
                self.capacity.keep()
            if self.refill is not None:
                self.refill.explicit.update(numbers)

    def drop_all(self) -> None:
        """Drop all ranges; the next one starts over the rows that there are then."""
        with self.locked():
            self._ranges.clear()
            self.capacity.keep()
            self.source = None

    def see(self, number: int) -> None:
        """Keep later ranges above an explicit number."""
        with self.locked():
            self.explicit = max(self.explicit, number)
            self.seen = max(self.seen, number)

    def burn(self, number: int) -> None:
        """Give no number up to this one again, whatever becomes of its transaction."""
        with self.locked():
            self.burnt = max(self.burnt, number)
            self.seen = max(self.seen, number)

    def note_stored(self, number: int) -> None:
        """Note that the row's Max is at least this number."""
        with self.locked():
            self.stored = max(self.stored, number)

    @property
    def newest(self) -> CachedRange | None:
        """The newest range, which alone can be returned."""
        # A copy is one step, and needs no lock.
        return max(self._ranges.copy(), key=lambda each: each.high, default=None)

    def give_up_newest(self) -> CachedRange | None:
        """Give up the numbers that are left of the newest range, and return them."""
        with self.locked():
            newest = self.newest
            if not newest or not newest.left:
                return None
            unused = CachedRange(newest.reservation)
            unused.next = newest.next
            newest.high = unused.next - 1
            # Max may fall to it at any moment: an explicit id above it needs a floor.
            self.stored = min(self.stored, newest.high)
            return unused

    def returned(self, cached: CachedRange) -> None:
        """Note that what was left of a range was returned."""
        with self.locked():
            if self.seen == cached.high:
                self.seen = max(cached.next - 1, self.explicit, self.burnt)


class _Found(threading.local):
    """The counters that a thread has found, by what callers named."""

    def __init__(self) -> None:
        self.by_name: dict[Any, Any] = {}


class Pool:
    """The memories of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.found = _Found()
        # Without a lock: each access is one step of a dict.
        self._memories: dict[Key, Memory] = {}
        # The keys of series, those that were found last at the end.
        self._series: dict[Key, None] = {}

    def memory(self, key: Key) -> Memory:
        """Return the memory of a counter, a new one the first time."""
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories.setdefault(key, Memory(key))
        return memory

    def old_series(self, used: Key, most: int) -> list[Key]:
        """Note that a series is used; return those that are too many.

        One as a rule: to return many would keep the caller waiting for seconds.
        """
        self._series.pop(used, None)
        self._series[used] = None
        if len(self._series) <= most:
            return []
        # A copy is one step; other threads may look, too.
        old = list(self._series)[:-most]
        return [key for key in old if self._series.pop(key, key) is not key]

    def seen(self, key: Key) -> int:
        """Return the highest number seen of a counter; 0: it may not exist."""
        # Looked up, not made: programs may name any number of collections.
        return getattr(self._memories.get(key), "seen", 0)

    def memories(self, using: str | None = None) -> list[Memory]:
        """Return all memories, or those of one alias."""
        found = list(self._memories.values())  # other threads may add to them
        return [each for each in found if using in (None, each.database.alias)]

    def forget_one(self, key: Key) -> None:
        """Drop all that is known of one counter."""
        if memory := self._memories.pop(key, None):
            memory.drop_all()
            self.forget_found()

    def forget_rows(self, using: str) -> None:
        """Drop the ranges of an alias that were reserved in its rows, not drawn."""
        for memory in self.memories(using):
            if memory.source is None or memory.source.rolls_back:
                memory.drop_all()
                memory.stored = 0

    def forget_found(self) -> None:
        """Let all threads find their counters anew."""
        self.found = _Found()

    def forget(self, using: str) -> None:
        """Drop all that is known of the counters of an alias."""
        for memory in self.memories(using):
            self.forget_one(memory.key)


_pool = Pool()


def current() -> Pool:
    """Return this process's pool; a new one after a fork that ran no hook."""
    if _pool.pid != os.getpid():
        after_fork_in_child()
    return _pool


def after_fork_in_child() -> None:
    """Start with none of the parent's ranges and locks."""
    global _pool
    _pool = Pool()
