"""Blocks of up to a thousand ids, handed out by an iterator in C.

Threads share the iterator without a lock of ours: with the GIL, one step of it neither
runs Python code nor allocates objects that the garbage collector counts, so no other
thread or finalizer runs in the middle of a step, and each id comes out once. Whoever
needs the remaining numbers back takes them out of the same iterator.

In the child of a fork the iterator ends at once. Each step reads a byte of a memory
page that Linux zeroes in the child, even if a server forks in C and runs none of
Python's hooks. Systems without such pages compare the process id at each step, and
builds of Python without a GIL use a lock.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import id_end, id_start

MAX_SIZE = 1_000

_MADV_WIPEONFORK = 18  # Linux 4.14; not among Python's constants


class TextStyle(NamedTuple):
    """``orders/33-A``, or ``orders/0033-A`` with a width of 4."""

    collection: str
    separator: str
    shows_tag: bool
    width: int

    def ids(self, reservation: Reservation, low: int, high: int) -> list[str]:
        """Return the ids of the numbers ``low`` to ``high`` of a range."""
        found: list[str] = []
        while low <= high:
            ids, count = self.block(reservation, low, high - low + 1)
            found += ids
            low += count
        return found

    def block(
        self, reservation: Reservation, low: int, most: int
    ) -> tuple[Iterator[str], int]:
        """Return an iterator in C over the next ids, up to ``most``, and their count.

        It ends before the next thousand. The ids are made at once, of a beginning such
        as ``orders/12`` and the ends ``345-A``, ``346-A``, ...
        """
        start = id_start(self.collection, self.separator, reservation.server_prefix)
        end = id_end(reservation.node_tag if self.shows_tag else "")
        thousands, first = divmod(low, 1000)
        digits = max(self.width, 1)
        if thousands or digits > 3:
            start, digits = f"{start}{thousands:0{max(digits - 3, 1)}}", 3
        ends = _ends(digits, end)[first : first + most]
        return iter([start + each for each in ends]), len(ends)


@lru_cache(64)
def _ends(digits: int, end: str) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}}{end}" for number in range(1000))


class Numbers(NamedTuple):
    """Ids that are the numbers themselves."""

    def ids(self, reservation: Reservation, low: int, high: int) -> range:
        return range(low, high + 1)

    def block(
        self, reservation: Reservation, low: int, most: int
    ) -> tuple[Iterator[int], int]:
        count = min(most, MAX_SIZE)
        return iter(range(low, low + count)), count


Style = TextStyle | Numbers


class _Locked(Iterator[Any]):
    """An iterator that threads without a GIL can share."""

    def __init__(self, ids: Iterator[Any]) -> None:
        self._ids = ids
        self._lock = threading.Lock()

    def __next__(self) -> Any:
        with self._lock:
            return next(self._ids)

    def end(self) -> int:
        with self._lock:
            return len(list(self._ids))


def shared(ids: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator for all threads, behind a lock if Python has no GIL."""
    return ids if _has_gil else _Locked(ids)


def block_of(ids: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator over up to `MAX_SIZE` ids, which a fork ends in the child."""
    marks = iter(_ones) if _ones else map(os.getpid().__eq__, iter(os.getpid, None))
    return shared(compress(ids, marks))


def end_block(ids: Iterator[Any]) -> int:
    """End an iterator of `block_of` in one step; return how many ids it had left."""
    return ids.end() if isinstance(ids, _Locked) else len(list(ids))


def after_fork_in_child() -> None:
    """End all blocks of the parent, and make new ones possible."""
    global _ones
    if _ones:
        _ones[:] = bytes(MAX_SIZE)
    _ones = _page()


def _page() -> memoryview | None:
    """Return ones that Linux turns into zeros in the child of a fork."""
    with suppress(AttributeError, OSError):  # another system
        memory = mmap.mmap(-1, MAX_SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(_MADV_WIPEONFORK)
        memory[:] = b"\x01" * MAX_SIZE
        return memoryview(memory)
    return None


_has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
_ones = _page()
