"""Worker processes: started, watched, killed, ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import PROJECT
from tests.long.cluster.postgres.server import PostgreSQL
from tests.long.cluster.tail import Tail
from tests.support.patience import PATIENCE

# More than a range holds (see settings.py).
IDS_OF_A_TURN = 9
# Of load in each phase of a long run.
SECONDS = float(os.environ.get("HILO_CLUSTER_SECONDS") or 0)


class Load:
    """Processes that write, each with a seat of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seed = str(time.time_ns())
        print("Seed of the workers:", self.seed)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._tails: list[Tail] = []
        self._killed: set[int] = set()

    def start(self, count: int, environment: dict[str, str]) -> list[int]:
        """Start processes; return their seats."""
        seats = range(len(self._processes), len(self._processes) + count)
        command = [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.long.cluster.postgres.worker",
        ]
        for seat in seats:
            with (self.folder / f"{seat:04}.stderr").open("wb") as errors:
                process = subprocess.Popen(
                    [*command, str(self.folder), str(seat), self.seed],
                    cwd=PROJECT,
                    env=environment,
                    stderr=errors,
                )
            self._processes.append(process)
            self._tails.append(Tail(self.folder, seat))
        return list(seats)

    def wait_for_ids(
        self, seats: Sequence[int] | None = None, count: int = 200
    ) -> None:
        """Wait until each worker has some more ids; longer in a long run.

        By turns, on a busy machine too: none draws on until all have drawn.
        """
        until = time.monotonic() + SECONDS
        for _ in range(0, count, IDS_OF_A_TURN):
            self.wait_for("given", seats, IDS_OF_A_TURN)
        while time.monotonic() < until:
            self.wait_for("given", seats, 1)

    def wait_for(
        self, word: str, seats: Sequence[int] | None = None, count: int = 1
    ) -> None:
        """Wait until each worker's journal has so many more lines of a word."""
        seats = self.seats() if seats is None else seats
        goals = {seat: self._tails[seat].counts()[word] + count for seat in seats}
        before: dict[int, int] = {}
        give_up_at = 0.0
        while missed := {
            seat: self._tails[seat].counts()[word]
            for seat, goal in goals.items()
            if self._tails[seat].counts()[word] < goal
        }:
            # Of who goes on, however slowly, more is to come.
            if any(before.get(seat) != count for seat, count in missed.items()):
                give_up_at = time.monotonic() + PATIENCE
            before = missed
            for seat in seats:
                assert self._processes[seat].poll() is None, self._said(seat)
            assert time.monotonic() < give_up_at, self._said(min(missed))
            time.sleep(0.02)

    def seats(self) -> list[int]:
        """Return the workers that nobody killed."""
        return [n for n in range(len(self._processes)) if n not in self._killed]

    def kill(self) -> None:
        """Kill all workers that run."""
        self._killed.update(self.seats())
        self.end_by_force()

    def end(self) -> None:
        """Let all end by themselves."""
        (self.folder / "end").touch()
        for seat in self.seats():
            assert self._processes[seat].wait(PATIENCE) == 0, self._said(seat)

    def end_by_force(self) -> None:
        """Leave none behind."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _said(self, seat: int) -> str:
        stderr = (self.folder / f"{seat:04}.stderr").read_text()
        return f"Worker {seat}, at last:\n{self._tails[seat].last_lines()}{stderr}"


def environment_on(
    servers: Sequence[PostgreSQL], name: str, tag: str, commit: str = ""
) -> dict[str, str]:
    """Return the environment of a Django process on the first that takes writes."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.long.cluster.postgres.settings",
        "HILO_POSTGRES_HOST": ",".join("127.0.0.1" for _ in servers),
        "HILO_POSTGRES_PORT": ",".join(str(server.port) for server in servers),
        "HILO_POSTGRES_NAME": name,
        "HILO_POSTGRES_TAG": tag,
        "HILO_POSTGRES_COMMIT": commit,
    }
