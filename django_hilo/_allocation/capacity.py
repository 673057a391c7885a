"""How much to fetch next, and when: from how long it took, and how long it lasted."""

from __future__ import annotations

import time
from typing import NamedTuple

from django_hilo.counters.ranges import next_capacity


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
