from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self

# RavenDB's thresholds, in seconds since the last range of this process was reserved.
DOUBLES_UNDER = 30.0
HALVES_OVER = 60.0


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


def next_capacity(
    last_size: int, seconds: float, capacity: int, max_capacity: int
) -> int:
    """Return how many numbers the next range holds, by RavenDB's rule.

    ``last_size`` and ``seconds`` are the capacity and the age of the last range of this
    process. Doubled when that lasted under 30 s, kept up to 60 s, halved after, always
    within ``capacity`` to ``max_capacity``.
    """
    if seconds < DOUBLES_UNDER:
        size = last_size * 2
    elif seconds <= HALVES_OVER:
        size = last_size
    else:
        size = last_size // 2
    return max(capacity, min(size, max_capacity))


class _Reserved(Protocol):
    @property
    def range(self) -> Range: ...


class _Source(Protocol):
    def reserve(self, using: str, size: int, /) -> Iterable[_Reserved]: ...


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

        def keys_of_next_hi() -> Iterator[int]:
            low = get_next_hi() * max_lo
            yield from range(low, low + max_lo)

        self._lock = threading.Lock()
        self._more = keys_of_next_hi
        self._keys: Iterator[int] = iter(())

    @classmethod
    def over(cls, source: _Source, using: str = "default", size: int = 1) -> Self:
        """Return a generator of the keys of a source, for scripts without models.

        ``source`` is one of `django_hilo.sources`, ``using`` the alias of its database;
        ``size`` keys or more are reserved at once, whole blocks where it has blocks.
        What is left of them when the script ends is a gap. Raises ValueError for
        ``size < 1``, and what the source raises.
        """
        generator = cls(int)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be a whole number from 1 on, not {size!r}.")

        def keys_of_next_ranges() -> Iterator[int]:
            for reserved in source.reserve(using, size):
                yield from range(reserved.range.low, reserved.range.high + 1)

        generator._more = keys_of_next_ranges
        return generator

    def generate_key(self) -> int:
        """Return the next key."""
        with self._lock:
            for key in self._keys:
                return key
            self._keys = self._more()
            return next(self._keys)
