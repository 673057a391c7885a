"""Ranges and reservations as values, and the classical Hi/Lo algorithm."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from django_hilo._lock import Lock
from django_hilo.exceptions import NestedReservation


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers ``low`` to ``high``, both of them included."""

    low: int
    high: int

    @property
    def size(self) -> int:
        """How many numbers the range holds."""
        return self.high - self.low + 1

    def __contains__(self, number: int) -> bool:
        return self.low <= number <= self.high


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reserved range, and what belongs to it: a return must show the ticket."""

    collection: str
    node_tag: str
    range: Range
    server_prefix: str
    ticket: str = field(repr=False)  # a secret
    # Max before it, or the floor if that was higher; None: not a row of ours.
    met: int | None = field(default=None, repr=False, compare=False)
    # How long it waited for the row, in seconds.
    waited: float = field(default=0.0, repr=False, compare=False)


# The seconds of a round trip, and not of a wait for other processes.
SHORT_WAIT = 0.25
# A wait doubles a range so often at most.
MOST_DOUBLINGS = 5


class Capacity(NamedTuple):
    """How many numbers the next range holds: more, if it had to wait for the row."""

    size: int
    # How many the last one held: what others wait for is not halved.
    last: int
    most: int

    def after(self, waited: float) -> int:
        """Return the size after a wait: twice as much for each second of it."""
        if waited < SHORT_WAIT:
            return self.size
        kept = max(self.size, min(self.last, self.most))
        return min(int(kept * 2 ** min(waited, MOST_DOUBLINGS)), self.most)


# That of a caller who said how many numbers.
AS_ASKED = Capacity(0, 0, 0)


class Wanted(NamedTuple):
    """What a reservation is asked for."""

    # Or as many as `capacity` says, if that is more.
    size: int
    # How many are enough near the end of the numbers.
    at_least: int = 1
    # All numbers are over it.
    minimum: int = 0
    # The name that a counter of others gives to its ranges, for `range_reserved`.
    collection: str = ""
    # The start of the ticket, if the counter has one.
    issuer: str = ""
    # That of our own counters, which a wait for the row makes larger.
    capacity: Capacity = AS_ASKED


class _Keys:
    """The hi of one process, the part of it that is used, and the lock of both.

    The child of a fork needs another: a thread that it lacks may hold the lock.
    """

    def __init__(self, used: int) -> None:
        self.pid, self.lock = os.getpid(), Lock()
        self.hi, self.lo = 0, used
        # That of the child of a fork, by its pid; all of its threads use the same one.
        self.next: dict[int, _Keys] = {}


class HiLoKeyGenerator:
    """The classical Hi/Lo algorithm: one hi from ``get_next_hi`` gives ``max_lo`` keys.

    The keys of hi are ``hi * max_lo`` to ``hi * max_lo + max_lo - 1``: hi 2 and max_lo
    1000 give 2000, 2001, ... 2999 (RavenDB's first generator). Safe among threads, and
    the child of a fork asks for a hi of its own. An error of ``get_next_hi`` passes
    through, and the next call asks it again. Raises ValueError for ``max_lo <= 0``.
    """

    def __init__(self, get_next_hi: Callable[[], int], max_lo: int = 1000) -> None:
        if not isinstance(max_lo, int):
            raise ValueError(f"max_lo must be an integer, not {max_lo!r}.")
        if max_lo <= 0:
            raise ValueError(f"max_lo must be greater than zero, not {max_lo!r}.")
        self._get_next_hi, self._max_lo = get_next_hi, max_lo
        self._keys = _Keys(max_lo)

    def generate_key(self) -> int:
        """Return the next key.

        Raises `NestedReservation` in a thread that is generating a key already, as in a
        finalizer or a signal handler.
        """
        keys, pid = self._keys, os.getpid()
        if keys.pid != pid:
            keys = self._keys = keys.next.setdefault(pid, _Keys(self._max_lo))
        if keys.lock.is_held_here():
            raise NestedReservation.amid("generating a key")
        with keys.lock:
            if keys.lo >= self._max_lo:
                keys.hi = self._get_next_hi()
                keys.lo = 0
            key = keys.hi * self._max_lo + keys.lo
            keys.lo += 1
            return key
