"""Starts the processes, does the planned faults, and ends what it started."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.long.torture import sabotage, seats
from tests.long.torture.faults import Faults, site_pids
from tests.long.torture.plan import faults_of
from tests.support.own_servers import OwnServer
from tests.support.patience import LONGEST, PATIENCE
from tests.support.programs import Program
from tests.support.servers import gunicorn

PROCESSES = 6
# What the slowest machine gives in the shortest run, many times over.
LEAST_GIVEN = 1_000
# Of a run with a sabotage, which must be seen on a busy machine too.
LEAST_STARTED = 80
# Faults come within a second, and ids too, however long the start took.
SHORTEST = 30.0
_PAUSE = 0.02
# Seconds that processes of a sabotaged run have to end.
_HUNG = 10.0


@dataclass
class Course:
    """What happened in a run, as the supervisor saw it."""

    faults: Counter[str] = field(default_factory=Counter)
    possible_faults: list[str] = field(default_factory=list)
    started: int = 0
    most_at_once: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    sessions: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def nothing_done(self, given: int) -> list[str]:
        """Return what is missing without which a run shows nothing, however short."""
        wrongs = []
        if self.started < PROCESSES:
            wrongs.append(f"{self.started} of {PROCESSES} processes were started.")
        if self.possible_faults and not self.faults:
            wrongs.append("No fault came.")
        if given < LEAST_GIVEN:
            wrongs.append(f"{given} numbers were given, under {LEAST_GIVEN}.")
        return wrongs


class Supervisor:
    """One run."""

    def __init__(
        self, folder: Path, seed: str, database: str, server: OwnServer | None
    ) -> None:
        self.course = Course()
        self._folder = folder
        self._seed = seed
        self._database = database
        self._server = server
        self._guests = count(seats.FIRST_GUEST)
        self._seats: Iterator[int] = count(1)
        self._running: dict[int, int] = {}
        # Those who are to be alone at the end, and guests, meet no faults.
        self._workers: dict[int, int] = {}
        self._faults = Faults(server, database, self._start_guest)
        self.course.possible_faults = self._faults.kinds()

    def run(self, until: float, *, only: int | None = None, least: int = 0) -> Course:
        """Run until a moment; with ``only``, the process of that seat and no faults.

        ``least``: how many processes must have been started by then.
        """
        started = time.monotonic()
        if only is not None:
            self._seats = iter([only])
        module = "tests.long.torture.nursery"
        self._nursery = Program(
            [sys.executable, "-m", module, str(self._folder), self._seed],
            self._environment(),
        )
        try:
            with self._site():
                self._nursery.read()
                if only is None:
                    self._torture(max(until, time.monotonic() + SHORTEST), least)
                    (self._folder / "stop").touch()
                else:
                    self._refill()
                self._faults.undo_due(all=True)
                have_ended = self._wait_for_ends()
            if have_ended:
                self._run_alone()
                self._look_for_sessions()
        finally:
            self._faults.undo_due(all=True)
            self._nursery.stop()
        self.course.faults = self._faults.done
        self.course.seconds = time.monotonic() - started
        self._read_errors()
        return self.course

    def _environment(self) -> dict[str, str]:
        names = json.dumps({"default": self._database})
        return {**os.environ, "HILO_TEST_NAMES": names}

    @contextmanager
    def _site(self) -> Iterator[None]:
        application = "tests.long.torture.wsgi:application"
        with gunicorn(application, self._environment()) as port:
            (self._folder / "port").write_text(str(port))
            yield

    def _torture(self, until: float, least: int) -> None:
        faults = faults_of(self._seed)
        fault = next(faults)
        due = time.monotonic() + fault.pause
        give_up_at = until + LONGEST
        while not self.course.failures:
            is_enough = self.course.started >= least or time.monotonic() > give_up_at
            if time.monotonic() > until and is_enough:
                break
            self._look()
            self._refill()
            self._faults.undo_due()
            if time.monotonic() >= due and self._workers:
                self._faults.do(fault, self._workers, site_pids(self._folder))
                fault = next(faults)
                due = time.monotonic() + fault.pause
            time.sleep(_PAUSE)

    def _refill(self) -> None:
        while len(self._workers) < PROCESSES:
            seat = next(self._seats, None)
            if seat is None:
                return
            self._workers[self._start({"seat": seat})] = seat
            self.course.started += 1
        self.course.most_at_once = max(self.course.most_at_once, len(self._running))

    def _start_guest(self, task: dict[str, Any]) -> None:
        self._start({"seat": next(self._guests), **task})

    def _start(self, task: dict[str, Any]) -> int:
        pid = int(self._nursery.ask(f"start {json.dumps(task)}"))
        self._running[pid] = task["seat"]
        return pid

    def _look(self) -> int:
        """Note who has ended, and return how many run, orphans among them."""
        told = json.loads(self._nursery.ask("look"))
        self._running = {int(pid): seat for pid, seat in told["running"].items()}
        self._workers = {
            pid: seat for pid, seat in self._workers.items() if pid in self._running
        }
        for seat, code in told["ended"]:
            self.course.ended[_NAMES.get(code, f"exit code {code}")] += 1
            if code > 0:
                text = f"The process of seat {seat} ended with {code}."
                self.course.failures.append(text)
        return len(self._running) + int(told["orphans"])

    def _wait_for_ends(self) -> bool:
        """Return whether all have ended in time."""
        # What a sabotage made hang is no finding; what it gave twice is.
        is_broken = sabotage.VARIABLE in os.environ
        give_up_at = time.monotonic() + (_HUNG if is_broken else LONGEST)
        while self._look():
            if time.monotonic() > give_up_at:
                if not is_broken:
                    text = f"Not all processes ended by themselves: {self._running}."
                    self.course.failures.append(text)
                return False
            time.sleep(_PAUSE)
        return True

    def _run_alone(self) -> None:
        """Run one more process, alone, that takes one id and ends."""
        if not self.course.failures:
            self._start({"seat": seats.ALONE, "guest": "take_alone"})
            self._wait_for_ends()

    def _look_for_sessions(self) -> None:
        """Look for what processes left on the server when all have ended."""
        if self._server is None:
            return
        sabotage.leave_session()
        # The server notices an end when it looks at the socket.
        give_up_at = time.monotonic() + PATIENCE
        while self.course.failures == []:
            sessions = self._server.sessions(self._database)
            if not sessions or time.monotonic() > give_up_at:
                self.course.sessions = [text for _, text in sessions]
                return
            time.sleep(0.1)

    def _read_errors(self) -> None:
        for path in sorted(self._folder.glob("*.stderr")):
            lines: Iterable[str] = path.read_text().splitlines()
            for line in list(lines)[-1:]:
                self.course.failures.append(f"{path.name}: {line}")


_NAMES = {0: "exit code 0", -9: "SIGKILL", -15: "SIGTERM"}
