"""How many numbers to fetch next, by RavenDB's rule.

`counters.ranges.Capacity` makes a range larger that had to wait for the row.
"""

import time
from collections.abc import Callable

from django_hilo.counters.ranges import Capacity

# RavenDB's thresholds, in seconds since the last range of this process was reserved.
DOUBLES_UNDER = 30.0
HALVES_OVER = 60.0


def next_capacity(
    last_size: int, seconds: float, capacity: int, max_capacity: int
) -> int:
    """Return how many numbers the next range contains, by RavenDB's rule.

    ``last_size`` and ``seconds`` are the capacity and the age of the last range of this
    process. The capacity is doubled if that range lasted under 30 s, kept up to 60 s
    and halved after that, always within ``capacity`` to ``max_capacity``.
    """
    size = last_size
    if seconds < DOUBLES_UNDER:
        size *= 2
    elif seconds > HALVES_OVER:
        size //= 2
    return max(capacity, min(size, max_capacity))


class AdaptiveCapacity:
    """Applies `next_capacity` to what was fetched last, and when."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        # One tuple, so that threads need no lock: size, and time unless it is kept.
        self._last: tuple[int, float | None] | None = None

    def next(self, least: int, most: int, first: int | None = None) -> int:
        """Return the next size, ``least`` to ``most``; first ``first``, or least."""
        if self._last is None:
            return least if first is None else first
        size, at = self._last
        seconds = DOUBLES_UNDER if at is None else self._clock() - at
        return next_capacity(size, seconds, least, most)

    def of_range(self, least: int, most: int) -> Capacity:
        """Return the capacity of the next range."""
        last = self._last[0] if self._last else 0
        return Capacity(self.next(least, most), last, most)

    def note(self, size: int) -> None:
        """Note that this size was fetched now."""
        self._last = size, self._clock()

    def keep(self) -> None:
        """Let the next size be the last one, which was not used up."""
        if self._last is not None:
            self._last = self._last[0], None
