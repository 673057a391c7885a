"""What the open transaction of a connection has reserved and raised.

A range that had to be reserved on the caller's connection belongs to the caller's
transaction: its numbers may leave only there, it joins the pool when the transaction
commits, and it is dropped when it, or a savepoint around the reservation, rolls back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.cache import Held, Share, take_from
from django_hilo._allocation.capacity import Pace
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._database.rollback import RollbackDetector, RollbackWatcher
from django_hilo.counters.ranges import Reservation


class Ledger:
    """What the open transaction of one connection has reserved and raised."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._pool = pool.current()
        self._ranges: dict[CounterKey, list[tuple[RollbackDetector, Held]]] = {}
        # Also those whose hooks are yet to be called, while other hooks run: a detector
        # lives as long as Django keeps its hook.
        self._unfinished: WeakKeyDictionary[RollbackDetector, tuple[CounterKey, Held]]
        self._unfinished = WeakKeyDictionary()
        self._paces: dict[CounterKey, tuple[RollbackDetector, Pace]] = {}
        self._floors: dict[CounterKey, list[Floor]] = {}
        self._watch = RollbackWatcher(connection)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Ledger:
        """Return the ledger of a connection; a child of a fork starts a new one."""
        ledger = vars(connection).get("hilo_ledger")
        if ledger is None or ledger._pool is not pool.current():
            ledger = cls(connection)
            vars(connection)["hilo_ledger"] = ledger
        return ledger

    def detector(self, on_commit: Callable[[], None]) -> RollbackDetector:
        """Return what tells whether the transaction may still commit all up to now."""
        return self._watch.detector(on_commit)

    def take(self, counter: Counter, count: int) -> list[Share] | None:
        """Take numbers of ranges that this transaction has reserved."""
        with counter.lock:
            entries = self._valid(counter.key)
            return take_from(deque(held for _, held in entries), count)

    def next_capacity(self, counter: Counter, least: int, most: int, count: int) -> int:
        """Return the capacity of the range to reserve now in this transaction."""
        if not self._connection.in_atomic_block:
            return count  # nothing could be kept, see add()
        detector, pace = self._paces.get(counter.key, (None, None))
        if detector is not None and pace is not None and detector.is_alive():
            return pace.next(least, least, most)
        return counter.next_capacity(least, most)

    def add(
        self,
        counter: Counter,
        reservations: Sequence[Reservation],
        capacity: int,
        count: int,
    ) -> list[Share] | None:
        """Bind ranges to the transaction, and take numbers of them."""
        ranges = [Held(reservation) for reservation in reservations]
        if not self._connection.in_atomic_block:
            # Without autocommit and atomic() nothing tells of the end of a transaction.
            return take_from(deque(ranges), count)
        pace = Pace()
        pace.note(capacity)
        for held in ranges:
            detector = self._bind(counter, held, capacity)
            self._paces[counter.key] = detector, pace
        return self.take(counter, count)

    def _bind(self, counter: Counter, held: Held, capacity: int) -> RollbackDetector:
        key = counter.key
        detector = self.detector(lambda: self._promote(key, held, capacity))
        self._unfinished[detector] = key, held
        with counter.lock:
            self._valid(key).append((detector, held))
        return detector

    def _valid(self, key: CounterKey) -> list[tuple[RollbackDetector, Held]]:
        entries = self._ranges.get(key, [])
        entries[:] = [
            (detector, held)
            for detector, held in entries
            if held.left and detector.is_alive()
        ]
        return self._ranges.setdefault(key, entries)

    def _promote(self, key: CounterKey, held: Held, capacity: int) -> None:
        if self._pool is pool.current():
            self._pool.counter(key).promote(held, capacity)

    def drop(self, counter: Counter, numbers: Iterable[int]) -> None:
        """Drop the ranges that would give one of these numbers."""
        with counter.lock:
            for detector, (key, held) in list(self._unfinished.items()):
                if key == counter.key and held.would_give(numbers):
                    detector.invalidate()

    def drain(self) -> dict[CounterKey, Held]:
        """Take no more of the ranges; return the newest of each counter.

        Each call returns them again until the transaction ends, or a savepoint around
        the reservation rolls back.
        """
        self._ranges.clear()
        self._paces.clear()
        newest: dict[CounterKey, Held] = {}
        for detector, (key, held) in list(self._unfinished.items()):
            high = held.reservation.range.high
            if detector.is_alive() and (
                key not in newest or newest[key].reservation.range.high < high
            ):
                newest[key] = held
        return newest

    def floor(self, key: CounterKey) -> Floor | None:
        """Return the newest floor of this transaction that did not roll back."""
        floors = self._floors.get(key, [])
        while floors and not floors[-1].detector.is_alive():
            floors.pop()
        return floors[-1] if floors else None

    def note_floor(
        self, key: CounterKey, number: int, on_commit: Callable[[Floor], None]
    ) -> Floor:
        """Note a floor that was written until the end of the transaction."""
        detector = self.detector(lambda: on_commit(floor))
        floor = self._note(key, number, detector)
        return floor

    def note_floor_to_write(
        self, key: CounterKey, number: int, on_commit: Callable[[Floor], None]
    ) -> Floor:
        """Note a floor that is to be written after the commit.

        Also where SQL rolled back some of the transaction: what, is not always known,
        and a floor too many is only a gap.
        """
        detector = RollbackDetector(self._connection, lambda: on_commit(floor))
        floor = self._note(key, number, detector)
        return floor

    def _note(self, key: CounterKey, number: int, detector: RollbackDetector) -> Floor:
        before = self.floor(key)
        floor = Floor(detector, number, before.pace if before else Pace())
        self._floors.setdefault(key, []).append(floor)
        return floor


class Floor:
    """The highest explicit number that a transaction has inserted, and its pace."""

    def __init__(self, detector: RollbackDetector, number: int, pace: Pace) -> None:
        self.detector = detector
        self.number = number
        self.pace = pace
