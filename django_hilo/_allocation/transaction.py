"""The ranges and floors of a connection's open transaction.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction. Its numbers are taken only there. It joins the pool when the transaction
commits, and is dropped when the transaction, or a savepoint around the reservation,
rolls back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.cache import CachedRange, Slice, take_from
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._database.rollback import RollbackDetector, RollbackWatcher
from django_hilo.counters.ranges import Reservation


@dataclass
class Floor:
    """The highest explicit number that a transaction has inserted.

    ``step`` adapts how far above it the next floor is raised.
    """

    number: int
    step: AdaptiveCapacity = field(default_factory=AdaptiveCapacity)


class TransactionState:
    """What the open transaction of one connection has reserved and raised."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._pool = pool.current()
        self._ranges: dict[CounterKey, list[tuple[RollbackDetector, CachedRange]]] = {}
        # Also ranges that wait for their hook while other hooks of the commit run: a
        # detector lives as long as Django keeps its hook.
        self._unfinished: WeakKeyDictionary[
            RollbackDetector, tuple[CounterKey, CachedRange]
        ] = WeakKeyDictionary()
        self._capacities: dict[
            CounterKey, tuple[RollbackDetector, AdaptiveCapacity]
        ] = {}
        self._floors: dict[CounterKey, list[tuple[RollbackDetector, Floor]]] = {}
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
            entries = self._valid(counter.key)
            return take_from(deque(cached for _, cached in entries), count)

    def capacity(self, counter: Counter) -> AdaptiveCapacity:
        """Return the capacity that this transaction goes on from."""
        bound = self._capacities.get(counter.key)
        return bound[1] if bound and bound[0].is_alive() else counter.capacity

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
        adaptive = AdaptiveCapacity()
        adaptive.note(capacity)
        for cached in ranges:
            detector = self._bind(counter, cached, capacity)
            self._capacities[counter.key] = detector, adaptive
        return self.take(counter, count)

    def _bind(
        self, counter: Counter, cached: CachedRange, capacity: int
    ) -> RollbackDetector:
        key = counter.key

        def promote() -> None:
            if self._pool is pool.current():
                self._pool.counter(key).promote(cached, capacity)

        detector = self.detector(promote)
        self._unfinished[detector] = key, cached
        with counter.locked():
            self._valid(key).append((detector, cached))
        return detector

    def _valid(self, key: CounterKey) -> list[tuple[RollbackDetector, CachedRange]]:
        entries = self._ranges.setdefault(key, [])
        entries[:] = [
            (detector, cached)
            for detector, cached in entries
            if cached.left and detector.is_alive()
        ]
        return entries

    def drop(self, counter: Counter, numbers: Iterable[int] | None = None) -> None:
        """Drop the ranges that contain one of these numbers, or all ranges."""
        with counter.locked():
            for detector, (key, cached) in list(self._unfinished.items()):
                if key == counter.key and (numbers is None or cached.has_any(numbers)):
                    detector.is_invalidated = True

    def drain(self) -> dict[CounterKey, CachedRange]:
        """Take no more of the ranges; return the newest of each counter.

        Each call returns them again until the transaction ends, or a savepoint around
        the reservation rolls back.
        """
        self._ranges.clear()
        self._capacities.clear()
        newest: dict[CounterKey, CachedRange] = {}
        for detector, (key, cached) in list(self._unfinished.items()):
            known = newest.get(key, cached)
            if detector.is_alive() and known.high <= cached.high:
                newest[key] = cached
        return newest

    def floor(self, key: CounterKey) -> Floor | None:
        """Return the newest floor of this transaction that was not rolled back."""
        floors = self._floors.get(key, [])
        while floors and not floors[-1][0].is_alive():
            floors.pop()
        return floors[-1][1] if floors else None

    def note_floor(
        self, key: CounterKey, floor: Floor, detector: RollbackDetector
    ) -> None:
        """Note a floor that lasts as long as the detector's work."""
        self._floors.setdefault(key, []).append((detector, floor))
