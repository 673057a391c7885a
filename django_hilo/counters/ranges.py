from collections.abc import Callable
from dataclasses import dataclass, field

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


class HiLoKeyGenerator:
    """The classical Hi/Lo algorithm: one hi from ``get_next_hi`` gives ``max_lo`` keys.

    The keys of hi are ``hi * max_lo`` to ``hi * max_lo + max_lo - 1``: hi 2 and max_lo
    1000 give 2000, 2001, ... 2999 (RavenDB's first generator). Safe among threads; an
    error of ``get_next_hi`` passes through, and the next call asks it again.
    Raises ValueError for ``max_lo <= 0``.
    """

    def __init__(self, get_next_hi: Callable[[], int], max_lo: int = 1000) -> None:
        if max_lo <= 0:
            raise ValueError(f"max_lo must be at least 1, not {max_lo!r}.")
        self._get_next_hi, self._max_lo = get_next_hi, max_lo
        self._hi, self._lo = 0, max_lo
        self._lock = Lock()

    def generate_key(self) -> int:
        """Return the next key.

        Raises `NestedReservation` in a thread that is generating a key already, as in a
        finalizer or a signal handler.
        """
        if self._lock.is_held_here():
            raise NestedReservation.amid("generating a key")
        with self._lock:
            if self._lo >= self._max_lo:
                self._hi = self._get_next_hi()
                self._lo = 0
            key = self._hi * self._max_lo + self._lo
            self._lo += 1
            return key
