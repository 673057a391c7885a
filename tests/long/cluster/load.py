"""Worker processes: started, watched, sent to rest, killed, ended."""

import json
import os
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.commands import PROJECT
from tests.support.patience import LONGEST, PATIENCE

# Of load in each phase of a long run.
SECONDS = float(os.environ.get("HILO_CLUSTER_SECONDS") or 0)
NO_ID = "ConcurrencyError", "ReservationTimeout"
# How many lines of a kind a worker's journal is to have.
Goals = dict[tuple[int, str], int]


@contextmanager
def running(servers: Any) -> Iterator[Any]:
    """Start servers; stop them afterwards."""
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def run_python(environment: dict[str, str], *arguments: str, expect: int = 0) -> str:
    """Run Python as a process of Django; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def migrate(environment: dict[str, str]) -> None:
    """Make all tables."""
    run_python(environment, "-m", "django", "migrate", "--run-syncdb", "--verbosity=0")


def environment(database: dict[str, Any], **hilo: Any) -> dict[str, str]:
    """Return the environment of a Django process with these settings."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.long.cluster.settings",
        "HILO_CLUSTER": json.dumps({"database": database, "hilo": hilo}),
    }


class Tail:
    """Counts the lines of one worker's journal as they come."""

    def __init__(self, folder: Path, seat: int) -> None:
        self._folder, self._pattern = folder, f"{seat:04}-*.log"
        self._read = 0
        self._counts: Counter[str] = Counter()
        self.last: deque[str] = deque(maxlen=9)

    def counts(self) -> Counter[str]:
        """Return how many lines there are of each word, and calls that got no id."""
        for path in self._folder.glob(self._pattern):
            with path.open() as file:
                file.seek(self._read)
                while (line := file.readline()).endswith("\n"):
                    _, word, *rest = line.split()
                    self._counts[word] += 1
                    if word == "call" and rest[-1].startswith(NO_ID):
                        self._counts["no id"] += 1
                    self.last.append(line)
                    self._read = file.tell()
        return self._counts


class Load:
    """Processes that write, each with a seat of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seed = str(time.time_ns())
        print("Seed of the workers:", self.seed)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._tails: list[Tail] = []
        self._gone: set[int] = set()

    def start(self, count: int, environment: dict[str, str], *labels: str) -> list[int]:
        """Start processes that save objects, orders unless told otherwise."""
        seats = range(len(self._processes), len(self._processes) + count)
        labels = labels or ("records.Order",)
        command = [sys.executable, "-W", "error", "-m", "tests.long.cluster.worker"]
        for seat in seats:
            with (self.folder / f"{seat:04}.stderr").open("wb") as errors:
                process = subprocess.Popen(
                    [*command, str(self.folder), str(seat), self.seed, *labels],
                    cwd=PROJECT,
                    env=environment,
                    stderr=errors,
                )
            self._processes.append(process)
            self._tails.append(Tail(self.folder, seat))
        return list(seats)

    def seats(self) -> list[int]:
        """Return the workers that were neither killed nor ended."""
        return [n for n in range(len(self._processes)) if n not in self._gone]

    def wait_for(
        self, word: str, seats: Iterable[int] | None = None, count: int = 1
    ) -> None:
        """Wait until each worker's journal has so many more lines of a word."""
        self._wait(self._next(word, seats, count))

    def wait_for_ids(
        self, seats: Sequence[int] | None = None, count: int = 200
    ) -> None:
        """Wait until each worker has some more ids; longer in a long run.

        By turns, on a busy machine too: none draws on until all have drawn.
        """
        until = time.monotonic() + SECONDS
        turn = 9  # more than a range holds
        for _ in range(0, count, turn):
            self.wait_for("given", seats, turn)
        while time.monotonic() < until:
            self.wait_for("given", seats)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let no worker write while the block runs."""
        resting = self._next("resting")
        (self.folder / "rest").touch()
        try:
            self._wait(resting)
            yield
        finally:
            (self.folder / "rest").unlink()

    def _next(
        self, word: str, seats: Iterable[int] | None = None, count: int = 1
    ) -> Goals:
        seats = self.seats() if seats is None else seats
        return {
            (seat, word): self._tails[seat].counts()[word] + count for seat in seats
        }

    def _wait(self, goals: Goals) -> None:
        before: Goals = {}
        give_up_at = 0.0
        while missed := {
            (seat, word): self._tails[seat].counts()[word]
            for (seat, word), count in goals.items()
            if self._tails[seat].counts()[word] < count
        }:
            # Of a worker that goes on, however slowly, more is to come.
            if any(before.get(key) != count for key, count in missed.items()):
                give_up_at = time.monotonic() + PATIENCE
            before = missed
            for seat in self.seats():
                assert self._processes[seat].poll() is None, self._said(seat)
            seat, word = min(missed)
            assert time.monotonic() < give_up_at, f"No {word!r}: {self._said(seat)}"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill all workers that run."""
        self._gone.update(self.seats())
        self.end_by_force()

    def end(self) -> None:
        """Let all end by themselves."""
        (self.folder / "end").touch()
        for seat in self.seats():
            assert self._processes[seat].wait(PATIENCE) == 0, self._said(seat)
        self._gone.update(self.seats())
        (self.folder / "end").unlink()

    def end_by_force(self) -> None:
        """Leave none behind."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _said(self, seat: int) -> str:
        stderr = (self.folder / f"{seat:04}.stderr").read_text()
        return f"Worker {seat}, at last:\n{''.join(self._tails[seat].last)}{stderr}"
