"""Ids that are handed out by an iterator in C, without a lock of ours.

Why that is safe: one step of the iterator runs no Python code, nor allocates what the
garbage collector counts (its finalizers are Python code), and only there may another
thread take over, so that each id comes out once (the "GIL"); whoever needs the
rest of the numbers takes them out of the same iterator. In the child of a fork it ends
at once: each step looks at a byte of a page of memory that the system wipes there, even
where a server forks in C and no hook of Python's runs. A system without such pages is
asked for the process's id each time; a build of Python without a GIL gets a lock.
"""

from __future__ import annotations

import mmap
import operator
import os
import sys
import threading
from collections.abc import Iterator
from itertools import compress
from typing import Any

from django_hilo._allocation.formats import Format, Style

MAX_SIZE = 8_192

_MADV_WIPEONFORK = 18  # Linux 4.14; not among Python's constants


class Block:
    """Ids of consecutive numbers of a range: an iterator, which a fork's child ends."""

    __slots__ = ("goes_on", "ids", "style")

    def __init__(self, format: Format, style: Style, low: int, high: int) -> None:
        ids = format.iterator(low, high - low + 1)
        self.style = style
        # Whether the next block was made with it: nothing has to be looked at before.
        self.goes_on = False
        self.ids = shared(compress(ids, _page.marks()))

    def end(self) -> int:
        """Give no more ids; return how many numbers are left, the last ones."""
        self.goes_on = False
        ids = self.ids
        return ids.end() if isinstance(ids, _Locked) else len(list(ids))


class _Page:
    """Ones, which the system makes zeros in the child of a fork."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._memory: Any = bytearray(MAX_SIZE)
        self._is_wiped = True
        if hasattr(os, "fork"):
            self._memory = mmap.mmap(
                -1, MAX_SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            )
            try:
                self._memory.madvise(_MADV_WIPEONFORK)
            except OSError:
                self._is_wiped = False
        self._memory[:] = b"\x01" * MAX_SIZE
        self._view = memoryview(self._memory)

    def marks(self) -> Iterator[int]:
        """Return an iterator in C that is true as long as the process is the same."""
        ones = iter(self._view)
        if self._is_wiped:
            return ones
        return map(operator.mul, ones, map(self._pid.__eq__, iter(os.getpid, None)))

    def wipe(self) -> None:
        """Do what a fork would."""
        self._memory[:] = bytes(MAX_SIZE)


class _Locked:
    """An iterator for threads without a GIL."""

    def __init__(self, ids: Iterator[Any]) -> None:
        self._ids = ids
        self._lock = threading.Lock()

    def __iter__(self) -> _Locked:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._ids)

    def end(self) -> int:
        """Take all at once, so that they are the last ones; return how many."""
        with self._lock:
            return len(list(self._ids))


def shared(ids: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator for all threads, behind a lock where there is no GIL."""
    return ids if _has_gil else _Locked(ids)


def after_fork_in_child() -> None:
    """End all blocks of the parent's; make others possible."""
    global _page
    _page.wipe()
    _page = _Page()


_has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
_page = _Page()
