"""Starts the workers, kills some, lets some fork, and ends what it started."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from tests.patience import LONGEST
from tests.stress.board import SEATS_PER_WORKER, WORKER_STARTS, Board

WORKERS = 8
_WORKER = (sys.executable, "-m", "tests.stress.worker")

# Short ranges make the processes meet at the counter; the default capacity, long
# ranges in memory. With conn_max_age None connections last.
PROFILES = (
    {"hilo": {"CAPACITY": 8, "MAX_CAPACITY": 16}, "conn_max_age": None},
    {"hilo": {}, "conn_max_age": 0},
    {"hilo": {"MAX_CAPACITY": 64}, "conn_max_age": 0},
    {"hilo": {"MAX_CAPACITY": 1024}, "conn_max_age": None},
)


@dataclass
class Goal:
    """When a run has done enough."""

    seconds: float
    ids: int = 0
    rows: int = 0
    events: int = 12

    def share(self, done: tuple[int, int], seconds: float) -> float:
        """Return how much of the goal is reached; 1 is all of it."""
        if not self.ids:
            return seconds / self.seconds
        return min(done[0] / self.ids, done[1] / self.rows)


@dataclass
class Course:
    """What happened in a run, as the supervisor saw it."""

    events: Counter[str] = field(default_factory=Counter)
    killed: set[int] = field(default_factory=set)
    # The last process works alone: what it does not use must go back.
    last_seat: int = 0
    ids: int = 0
    rows: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


class Running:
    """A worker that was started and has not been seen to end."""

    def __init__(self, number: int, seat: int, process: subprocess.Popen[bytes]):
        self.number = number
        self.seat = seat
        self.process = process
        self.asked_to_end = False


class Supervisor:
    """One run."""

    def __init__(self, folder: Path, seed: str, database: str) -> None:
        self.folder = folder
        self.board = Board(folder / "board")
        self.course = Course()
        self._seed = seed
        self._random = random.Random(seed)
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.stress.settings",
            "HILO_TEST_NAMES": json.dumps({"default": database}),
        }
        self._starts = 0
        self._running: list[Running] = []
        # Whom the next event meets: in turn workers with long and with short ranges.
        self._next = {kind: cycle(self._turns()) for kind in ("kill", "fork", "end")}

    def run(self, goal: Goal) -> Course:
        """Run until the goal is reached; nothing that was started is left."""
        try:
            self.board.start(goal.seconds + 2 * LONGEST)
            for number in range(WORKERS):
                self._start(number)
            self._wait_for_start()
            self._supervise(goal)
            self._end_all()
            if not self.course.failures:
                self._run_last()
        finally:
            self._end_by_force()
        self._read_errors()
        self.course.ids, self.course.rows = self.board.done(self._starts)
        return self.course

    def _turns(self) -> list[int]:
        long, short = list(range(1, WORKERS, 2)), list(range(0, WORKERS, 2))
        self._random.shuffle(long)
        self._random.shuffle(short)
        return [number for pair in zip(long, short, strict=True) for number in pair]

    def _start(self, number: int) -> None:
        seat = self._starts * SEATS_PER_WORKER
        self._starts += 1
        profile = json.dumps(PROFILES[number % len(PROFILES)])
        with (self.folder / f"{seat:04}.stderr").open("wb") as errors:
            process = subprocess.Popen(
                [*_WORKER, str(self.folder), str(seat), self._seed],
                env={**self._environment, "HILO_STRESS_PROFILE": profile},
                stderr=errors,
            )
        self.course.events["started"] += 1
        self._running.append(Running(number, seat, process))

    def _wait_for_start(self) -> None:
        give_up_at = time.monotonic() + LONGEST
        while not all(self.board.has_begun(worker.seat) for worker in self._running):
            self._reap(restart=False)
            if len(self._running) < WORKERS or time.monotonic() > give_up_at:
                self.course.failures.append("Not all workers started.")
                return
            time.sleep(0.05)

    def _supervise(self, goal: Goal) -> None:
        started = time.monotonic()
        plan = self._plan(goal.events)
        share = 0.0
        while not self.course.failures and (share < 1 or plan):
            time.sleep(0.02)
            self.course.seconds = time.monotonic() - started
            self._reap(restart=True)
            done = self.board.done(self._starts)
            share = goal.share(done, self.course.seconds)
            if goal.ids:
                self.board.want(ids=done[0] < goal.ids, rows=done[1] < goal.rows)
            if plan and share >= plan[0][0] and self._do(plan[0][1]):
                plan.pop(0)
            # What is planned still has to happen where all are slow.
            if self.course.seconds > goal.seconds + (LONGEST if plan else 1):
                if goal.ids and share < 1:
                    text = f"Only {done} ids and rows after {goal.seconds:g} s."
                    self.course.failures.append(text)
                break

    def _plan(self, count: int) -> list[tuple[float, str]]:
        kinds = ["kill", "fork", "end", "kill", "fork", "fork"]
        events = [kinds[place % len(kinds)] for place in range(count)]
        self._random.shuffle(events)
        return [((n + 1) / (count + 1), kind) for n, kind in enumerate(events)]

    def _do(self, kind: str) -> bool:
        """Do it to the worker whose turn it is, if that is at work."""
        number = next(self._next[kind])
        at_work = [
            worker
            for worker in self._running
            if worker.number == number
            and not worker.asked_to_end
            and self.board.has_begun(worker.seat)
        ]
        if not at_work:
            return False
        worker = at_work[0]
        if kind == "fork":
            done = self.board.ask_to_fork(worker.seat)
            self.course.events["asked to fork"] += done
            return done
        if kind == "end":
            worker.asked_to_end = True
            self.board.ask_to_end(worker.seat)
            return True
        worker.process.kill()
        worker.process.wait()
        self.course.events["killed"] += 1
        self.course.killed.add(worker.seat)
        self._running.remove(worker)
        self._restart(worker)
        return True

    def _restart(self, worker: Running) -> None:
        if self._starts < WORKER_STARTS - 1:
            self._start(worker.number)

    def _reap(self, *, restart: bool) -> None:
        for worker in list(self._running):
            code = worker.process.poll()
            if code is None:
                continue
            self._running.remove(worker)
            if code != 0 or not worker.asked_to_end:
                text = f"The worker of seat {worker.seat} ended with {code}."
                self.course.failures.append(text)
            else:
                self.course.events["ended normally"] += 1
                if restart:
                    self._restart(worker)

    def _end_all(self) -> None:
        """Ask all to end, and wait until they have."""
        self.board.stop()
        for worker in self._running:
            worker.asked_to_end = True
        give_up_at = time.monotonic() + LONGEST
        while self._running or self._children():
            self._reap(restart=False)
            if time.monotonic() > give_up_at:
                self.course.failures.append("Not all processes ended by themselves.")
                return
            time.sleep(0.05)

    def _children(self) -> dict[int, int]:
        """Return the pids of the forked children that are still at work, by seat."""
        running = self.board.running(self._starts).items()
        return {
            seat: pid
            for seat, pid in running
            if seat % SEATS_PER_WORKER and _is_alive(pid)
        }

    def _run_last(self) -> None:
        """Run one more process, alone, that takes one id and ends."""
        self.course.last_seat = self._starts * SEATS_PER_WORKER
        self._environment["HILO_STRESS_ALONE"] = "1"
        self._start(0)
        self._running[0].asked_to_end = True
        self._end_all()

    def _read_errors(self) -> None:
        for path in sorted(self.folder.glob("*.stderr")):
            lines = path.read_text().splitlines()
            if lines:
                text = f"Seat {path.stem} or a child of it: {lines[-1]}"
                self.course.failures.append(text)

    def _end_by_force(self) -> None:
        self.board.stop()
        for worker in self._running:
            # Where it hangs is written to its stderr.
            worker.process.send_signal(signal.SIGUSR1)
        pids = self._children().values()
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)
        if self._running or pids:
            time.sleep(1)
        for worker in self._running:
            worker.process.kill()
            worker.process.wait()
        for pid in self._children().values():
            os.kill(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    # An orphan that nobody waits for stays as a zombie.
    return status.rpartition(")")[2].split()[0] != "Z"
