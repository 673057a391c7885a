"""Shared memory: what the supervisor wants, and how far each thread is.

Each process has a seat, a row of cells. A cell has one writer, so no lock is needed,
and what a killed process wrote stays.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path

THREADS = 4
# A worker takes one seat, and one more for each child that it forks.
FORKS = 3
SEATS_PER_WORKER = 1 + FORKS
WORKER_STARTS = 250

_STOP, _WANTS_IDS, _WANTS_ROWS, _DEADLINE, _HEADER = range(5)
_PID, _STATE, _END, _FORK, _IDS = range(5)
_ROWS = _IDS + THREADS
_SEAT = _ROWS + THREADS
_CELLS = _HEADER + _SEAT * SEATS_PER_WORKER * WORKER_STARTS
_RUNNING, _ENDED = 1, 2


class Board:
    """The cells of one run."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_CELLS * 8))
        with path.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    def start(self, seconds: float) -> None:
        """Ask for ids and rows, for some seconds at most."""
        self._cells[_DEADLINE] = time.monotonic_ns() + int(seconds * 1e9)
        self.want(ids=True, rows=True)

    def want(self, *, ids: bool, rows: bool) -> None:
        """Ask for ids, or rows, or both."""
        self._cells[_WANTS_IDS] = ids
        self._cells[_WANTS_ROWS] = rows

    def stop(self) -> None:
        """Ask all processes to end."""
        self._cells[_STOP] = 1

    def wants_ids(self) -> bool:
        """Whether ids of the generator are still wanted."""
        return bool(self._cells[_WANTS_IDS])

    def wants_rows(self) -> bool:
        """Whether rows are still wanted."""
        return bool(self._cells[_WANTS_ROWS])

    def is_over(self, seat: int) -> bool:
        """Whether the process of a seat is to end."""
        return bool(
            self._cells[_STOP]
            or self._cells[_at(seat, _END)]
            or time.monotonic_ns() > self._cells[_DEADLINE]
        )

    def sit_down(self, seat: int, pid: int) -> None:
        """Note that a process has started."""
        self._cells[_at(seat, _PID)] = pid
        self._cells[_at(seat, _STATE)] = _RUNNING

    def get_up(self, seat: int) -> None:
        """Note that a process is ending and will touch no database any more."""
        self._cells[_at(seat, _STATE)] = _ENDED

    def ask_to_end(self, seat: int) -> None:
        """Ask one process to end."""
        self._cells[_at(seat, _END)] = 1

    def ask_to_fork(self, seat: int) -> bool:
        """Ask one worker to fork once more, if it has a seat left for the child."""
        asked = self._cells[_at(seat, _FORK)]
        if asked < FORKS:
            self._cells[_at(seat, _FORK)] = asked + 1
        return asked < FORKS

    def forks_asked(self, seat: int) -> int:
        """Return how many times a worker has been asked to fork."""
        return self._cells[_at(seat, _FORK)]

    def count(self, seat: int, thread: int, *, ids: int = 0, rows: int = 0) -> None:
        """Count what a thread has done; only that thread calls this."""
        self._cells[_at(seat, _IDS) + thread] += ids
        self._cells[_at(seat, _ROWS) + thread] += rows

    def done(self, starts: int) -> tuple[int, int]:
        """Return the ids and rows of all processes of so many worker starts."""
        ids = rows = 0
        for seat in range(starts * SEATS_PER_WORKER):
            ids += sum(self._of_threads(seat, _IDS))
            rows += sum(self._of_threads(seat, _ROWS))
        return ids, rows

    def has_begun(self, seat: int) -> bool:
        """Whether each thread of a process has got something."""
        ids, rows = self._of_threads(seat, _IDS), self._of_threads(seat, _ROWS)
        return all(i + r for i, r in zip(ids, rows, strict=True))

    def running(self, starts: int) -> dict[int, int]:
        """Return the pids of the processes that have not said good-bye, by seat."""
        return {
            seat: self._cells[_at(seat, _PID)]
            for seat in range(starts * SEATS_PER_WORKER)
            if self._cells[_at(seat, _STATE)] == _RUNNING
        }

    def _of_threads(self, seat: int, first: int) -> list[int]:
        start = _at(seat, first)
        return list(self._cells[start : start + THREADS])


def _at(seat: int, cell: int) -> int:
    return _HEADER + seat * _SEAT + cell
