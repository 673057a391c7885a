"""The worker processes on all nodes: started, watched, sent to rest, ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import PROJECT
from tests.long.cluster.galera.cluster import Cluster
from tests.long.cluster.galera.node import Node
from tests.long.cluster.tail import Tail
from tests.support.patience import PATIENCE

WORKERS_PER_NODE = 2

# How many lines of a kind a worker's journal is to have.
Goals = dict[tuple[int, str], int]


class Load:
    """Two processes a node."""

    def __init__(self, cluster: Cluster, folder: Path, seed: str) -> None:
        self.cluster = cluster
        self.folder = folder
        self._seed = seed
        self._processes: list[subprocess.Popen[bytes]] = []
        self._tails: list[Tail] = []

    def start(self) -> None:
        """Start all, and wait until each has been given numbers."""
        for seat in range(len(self.cluster.nodes) * WORKERS_PER_NODE):
            self._processes.append(self._start(seat))
            self._tails.append(Tail(self.folder, seat))
        self.wait_for_progress()

    def _start(self, seat: int) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.long.cluster.galera.worker",
        ]
        with (self.folder / f"{seat:04}.stderr").open("wb") as errors:
            return subprocess.Popen(
                [*command, str(self.folder), str(seat), self._seed],
                cwd=PROJECT,
                env=environment_on(self.node_of(seat)),
                stderr=errors,
            )

    def node_of(self, seat: int) -> Node:
        """Return the node that a worker is a client of."""
        return self.cluster.nodes[seat // WORKERS_PER_NODE]

    def seats_of(self, nodes: Sequence[Node]) -> list[int]:
        """Return the workers of some nodes."""
        seats = range(len(self._processes))
        return [seat for seat in seats if self.node_of(seat) in nodes]

    def wait_for_progress(
        self, nodes: Sequence[Node] | None = None, rows: int = 30
    ) -> None:
        """Wait until each worker of the nodes (of all) has written some more rows."""
        self._wait_for(self._next("stood", rows, nodes or self.cluster.nodes))

    def wait_for_refusals(self, nodes: Sequence[Node]) -> None:
        """Wait until each worker of the nodes got no id, but an error."""
        self._wait_for(self._next("ConcurrencyError", 1, nodes))

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let no worker write while the block runs."""
        resting = self._next("resting", 1, self.cluster.nodes)
        (self.folder / "rest").touch()
        try:
            self._wait_for(resting)
            yield
        finally:
            (self.folder / "rest").unlink()

    def _next(self, what: str, count: int, nodes: Sequence[Node]) -> Goals:
        return {
            (seat, what): self._tails[seat].counts()[what] + count
            for seat in self.seats_of(nodes)
        }

    def _wait_for(self, goals: Goals) -> None:
        before: dict[tuple[int, str], int] = {}
        give_up_at = 0.0
        while missed := {
            (seat, what): self._tails[seat].counts()[what]
            for (seat, what), count in goals.items()
            if self._tails[seat].counts()[what] < count
        }:
            # Of who goes on, however slowly, more is to come.
            if any(before.get(key) != count for key, count in missed.items()):
                give_up_at = time.monotonic() + PATIENCE
            before = missed
            ended = [p.args for p in self._processes if p.poll() is not None]
            assert not ended, f"{ended} ended:\n{self._said()}"
            assert time.monotonic() < give_up_at, (
                f"Not in {PATIENCE} s:\n{self._last_lines(list(missed))}"
            )
            time.sleep(0.05)

    def end(self) -> None:
        """Let all end by themselves."""
        (self.folder / "end").touch()
        for process in self._processes:
            assert process.wait(PATIENCE) == 0, self._said()

    def end_by_force(self) -> None:
        """Leave none behind."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _said(self) -> str:
        return "\n".join(p.read_text() for p in sorted(self.folder.glob("*.stderr")))

    def _last_lines(self, missed: Sequence[tuple[int, str]]) -> str:
        return "\n".join(
            f"Worker {seat} on {self.node_of(seat)} has no more {what!r}; at last:\n"
            f"{self._tails[seat].last_lines()}"
            for seat, what in missed
        )


def environment_on(node: Node) -> Mapping[str, str]:
    """Return the environment of a Django process on a node."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.long.cluster.galera.settings",
        "HILO_GALERA_PORT": str(node.ports.sql),
        "HILO_GALERA_TAG": node.tag,
    }
