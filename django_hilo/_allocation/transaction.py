"""The ranges and floors of a connection's open transaction.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction. Its numbers are taken only there. It joins the pool when the transaction
commits, and is dropped when the transaction, or a savepoint around the reservation,
rolls back.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.cache import CachedRange, Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._database.rollback import RollbackDetector, RollbackWatcher
from django_hilo.counters.ranges import Reservation

T = TypeVar("T")


@dataclass
class Floor:
    """The highest explicit number that a transaction has inserted."""

    number: int
    # How far above it the next floor is raised.
    step: AdaptiveCapacity = field(default_factory=AdaptiveCapacity)


class Lasting(defaultdict[CounterKey, list[tuple[RollbackDetector, T]]]):
    """What lasts, for each counter, as long as the work that its detector watches."""

    def newest(self, key: CounterKey) -> T | None:
        """Return what came last and was not rolled back."""
        entries = self[key]
        while entries and not entries[-1][0].is_alive():
            entries.pop()
        return entries[-1][1] if entries else None


class TransactionState:
    """What the open transaction of one connection has reserved and raised."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._pool = pool.current()
        self._ranges: Lasting[CachedRange] = Lasting(list)
        # Also ranges that wait for their hook while other hooks of the commit run: a
        # detector lives as long as Django keeps its hook.
        self._unfinished: WeakKeyDictionary[
            RollbackDetector, tuple[CounterKey, CachedRange]
        ] = WeakKeyDictionary()
        # What the transaction goes on from.
        self.capacities: Lasting[AdaptiveCapacity] = Lasting(list)
        self.floors: Lasting[Floor] = Lasting(list)
        # Returns a detector of rollbacks of the work up to now.
        self.detector = RollbackWatcher(connection).detector

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> TransactionState:
        """Return the state of a connection; a new one in the child of a fork."""
        state = vars(connection).get("hilo_transaction")
        if state is None or state._pool is not pool.current():
            state = vars(connection)["hilo_transaction"] = cls(connection)
        return state

    def take(self, counter: Counter, count: int) -> list[Slice] | None:
        """Take numbers of ranges that this transaction has reserved."""
        with counter.locked():
            bound = self._ranges[counter.key]
            bound[:] = [each for each in bound if each[1].left and each[0].is_alive()]
            return take_from(deque(cached for _, cached in bound), count)

    def add(
        self,
        counter: Counter,
        reserved: Sequence[Reservation],
        capacity: int,
        count: int,
    ) -> list[Slice] | None:
        """Bind ranges to the transaction, and take numbers of them."""
        ranges = [CachedRange(each) for each in reserved]
        if not self._connection.in_atomic_block:
            # Outside of atomic(), Django does not announce a commit.
            return take_from(deque(ranges), count)
        key, adaptive = counter.key, AdaptiveCapacity()
        adaptive.note(capacity)
        for cached in ranges:
            detector = self.detector(partial(self._promote, key, cached, capacity))
            self._unfinished[detector] = key, cached
            with counter.locked():
                self._ranges[key].append((detector, cached))
        self.capacities[key].append((detector, adaptive))
        return self.take(counter, count)

    def _promote(self, key: CounterKey, cached: CachedRange, capacity: int) -> None:
        if self._pool is pool.current():
            self._pool.counter(key).add([cached], capacity)

    def drop(self, counter: Counter, numbers: Iterable[int] | None = None) -> None:
        """Drop the ranges that contain one of these numbers, or all ranges."""
        with counter.locked():
            for detector, (key, cached) in list(self._unfinished.items()):
                if key == counter.key and (numbers is None or cached.has_any(numbers)):
                    detector.is_invalidated = True

    def drain(self) -> dict[CounterKey, CachedRange]:
        """Take no more of the ranges; return the newest of each counter."""
        self._ranges.clear()
        self.capacities.clear()
        alive = [found for each, found in self._unfinished.items() if each.is_alive()]
        # Of the pairs with one key, the last stays.
        return dict(sorted(alive, key=lambda found: found[1].high))
