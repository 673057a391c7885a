"""Ids made by the thousand, and handed out by an iterator in C.

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
import operator
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, compress, product, starmap
from typing import Any, NamedTuple, Protocol

from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import id_end, id_start

MAX_SIZE = 8_192

_MADV_WIPEONFORK = 18  # Linux 4.14; not among Python's constants


class Format(Protocol):
    """Makes ids of consecutive numbers."""

    def ids(self, low: int, high: int) -> Sequence[Any]:
        """Return the ids of the numbers ``low`` to ``high``."""

    def block(self, low: int, most: int) -> tuple[Iterator[Any], int]:
        """Return an iterator in C over the next ids, up to ``most``, and their count.

        They are made as they are taken: a list of them would be twenty times as large
        as all that a counter holds otherwise.
        """


class Style(Protocol):
    """How a target's ids look; the server prefix and the tag come from the range."""

    def of(self, reservation: Reservation) -> Format:
        """Return the format of a range's ids."""


class TextFormat(NamedTuple):
    """The text before and after a number, and its digits with leading zeros.

    With a ``width`` of 0 numbers have no leading zeros.
    """

    start: str
    end: str
    width: int

    def ids(self, low: int, high: int) -> list[str]:
        found: list[str] = []
        while low <= high:
            heads, tails = self._parts(low, high - low + 1)
            found += [head + tail for head in heads for tail in tails]
            low += len(heads) * len(tails)
        return found

    def block(self, low: int, most: int) -> tuple[Iterator[str], int]:
        heads, tails = self._parts(low, most)
        pairs = product(heads, tails)
        # The first pair is a new tuple; product() uses it again for all later ones.
        first = operator.add(*next(pairs))
        ids = chain(iter((first,)), starmap(operator.add, pairs))
        return ids, len(heads) * len(tails)

    def _parts(self, low: int, most: int) -> tuple[list[str], tuple[str, ...]]:
        """Return beginnings and ends that make the next ids: ``orders/12``, ``345-A``.

        The ends are made once. Up to ``most`` ids: whole thousands, or up to the next.
        """
        thousands, first = divmod(low, 1000)
        heads, digits = [self.start], max(self.width, 1)
        if thousands or digits > 3:
            several = 1 if first else max(most // 1000, 1)
            zeros = max(digits - 3, 1)
            following = range(thousands, thousands + several)
            heads = [f"{self.start}{each:0{zeros}}" for each in following]
            digits = 3
        return heads, _tails(digits, self.end)[first : first + most]


@lru_cache(64)
def _tails(digits: int, end: str) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}}{end}" for number in range(1000))


class TextStyle(NamedTuple):
    """``orders/33-A``, or ``orders/0033-A`` with a width of 4."""

    collection: str
    separator: str
    shows_tag: bool
    width: int

    def of(self, reservation: Reservation) -> TextFormat:
        prefix = reservation.server_prefix
        return TextFormat(
            id_start(self.collection, self.separator, prefix),
            id_end(reservation.node_tag if self.shows_tag else ""),
            self.width,
        )


class Numbers(NamedTuple):
    """Ids that are the numbers themselves: style and format at once."""

    def of(self, reservation: Reservation) -> Numbers:
        return self

    def ids(self, low: int, high: int) -> range:
        return range(low, high + 1)

    def block(self, low: int, most: int) -> tuple[Iterator[int], int]:
        return iter(range(low, low + most)), most


class _Page:
    """Ones, which Linux turns into zeros in the child of a fork."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._memory: Any = bytearray(MAX_SIZE)
        self._is_wiped = True
        if hasattr(os, "fork"):
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self._memory = mmap.mmap(-1, MAX_SIZE, flags)
            try:
                self._memory.madvise(_MADV_WIPEONFORK)
            except OSError:
                self._is_wiped = False
        self._memory[:] = b"\x01" * MAX_SIZE
        self._view = memoryview(self._memory)

    def marks(self) -> Iterator[int]:
        """Return an iterator in C that is true while the process is the same."""
        if self._is_wiped:
            return iter(self._view)
        return map(self._pid.__eq__, iter(os.getpid, None))

    def wipe(self) -> None:
        """Do what a fork would do."""
        self._memory[:] = bytes(MAX_SIZE)


class _Locked:
    """An iterator that threads without a GIL can share."""

    def __init__(self, ids: Iterator[Any]) -> None:
        self._ids = ids
        self._lock = threading.Lock()

    def __iter__(self) -> _Locked:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._ids)

    def end(self) -> int:
        """Take the remaining ids at once; return how many they were."""
        with self._lock:
            return len(list(self._ids))


def shared(ids: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator for all threads, behind a lock if Python has no GIL."""
    return ids if _has_gil else _Locked(ids)


def block_of(ids: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator over up to `MAX_SIZE` ids, which a fork ends in the child."""
    return shared(compress(ids, _page.marks()))


def end_block(ids: Iterator[Any]) -> int:
    """Let an iterator of `block_of` end now; return how many ids it had left."""
    return ids.end() if isinstance(ids, _Locked) else len(list(ids))


def after_fork_in_child() -> None:
    """End all blocks of the parent, and make new ones possible."""
    global _page
    _page.wipe()
    _page = _Page()


_has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
_page = _Page()
