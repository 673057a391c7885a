"""One process: four threads that take ids until they are told to stop.

Started with ``python -m tests.stress.worker FOLDER SEAT SEED``.
"""

from __future__ import annotations

import atexit
import faulthandler
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import django

from tests.stress import journal
from tests.stress.board import THREADS, Board

SUPERVISOR = os.getppid()


class Worker:
    """A process with a seat on the board; after a fork, the child's is another."""

    def __init__(self, folder: Path, seat: int, seed: str) -> None:
        self.folder = folder
        self.seat = seat
        self.seed = seed
        self.board = Board(folder / "board")
        self.failed = False
        self.rounds_left = float("inf")

    def take_one(self) -> int:
        """Take one id, and return the exit code."""
        from django_hilo.generator import next_id

        journal.use(journal.Journal(self.folder, self.seat, "main"))
        self.board.sit_down(self.seat, os.getpid())
        journal.mine().note("given", next_id("orders"))
        return 0

    def run(self) -> int:
        """Work until it is time to end, and return the exit code."""
        from tests.stress.forking import Gate

        journal.use(journal.Journal(self.folder, self.seat, "main"))
        self.board.sit_down(self.seat, os.getpid())
        self.gate = Gate()
        self.threads = [
            threading.Thread(target=self._take, args=(number,))
            for number in range(THREADS)
        ]
        for thread in self.threads:
            thread.start()
        forks = 0
        while any(thread.is_alive() for thread in self.threads):
            if self.board.forks_asked(self.seat) > forks and not self._is_over():
                forks += 1
                if self._fork(forks) == 0:
                    return self.run()
            time.sleep(0.02)
        return 1 if self.failed else 0

    def _is_over(self) -> bool:
        orphaned = self.rounds_left == float("inf") and os.getppid() != SUPERVISOR
        return self.failed or orphaned or self.board.is_over(self.seat)

    def _take(self, number: int) -> None:
        from django.db import connections

        from tests.stress.forking import remember_connection
        from tests.stress.taker import Taker

        mine = journal.Journal(self.folder, self.seat, str(number))
        journal.use(mine)
        remember_connection()
        taker = Taker(self.board, self.seat, number, self.seed, mine)
        rounds = 0
        try:
            while rounds < self.rounds_left and not self._is_over():
                self.gate.pass_through()
                taker.do_some()
                rounds += 1
        except BaseException:
            mine.note("failed", traceback.format_exc())
            self.failed = True
        finally:
            connections.close_all()

    def _fork(self, forks: int) -> int:
        from tests.stress.forking import fork

        child_seat = self.seat + forks
        pid = fork(self.gate, self.threads, child_seat)
        if pid == 0:
            self._become_child(child_seat)
        return pid

    def _become_child(self, seat: int) -> None:
        chance = random.Random(f"{self.seed}/{seat}")
        self.seat = seat
        self.rounds_left = chance.randint(10, 60)
        if chance.random() < 0.5:
            # Without a good-bye: its ranges become gaps.
            atexit.register(self._vanish)

    def _vanish(self) -> None:
        journal.mine().note("ended", "_exit")
        self.board.get_up(self.seat)
        os._exit(1 if self.failed else 0)

    def end(self) -> None:
        """Say that nothing more will come."""
        journal.mine().note("ended", "normally")
        self.board.get_up(self.seat)


class Retries(logging.Handler):
    """Notes the warnings of django_hilo."""

    def emit(self, record: logging.LogRecord) -> None:
        journal.mine().note("retry", record.getMessage())


def listen() -> None:
    """Note each range that this process reserves or returns."""
    from django_hilo.signals import range_reserved, range_returned

    range_reserved.connect(_note_reserved)
    range_returned.connect(_note_returned)
    logging.getLogger("django_hilo").addHandler(Retries(logging.WARNING))


def _note_reserved(reservation: Any, using: str, **kwargs: object) -> None:
    from django.db import connections

    from django_hilo.connections import is_bound

    bound = "bound" if is_bound(connections[using]) else "free"
    journal.mine().note("range", reservation.range.low, reservation.range.high, bound)


def _note_returned(last: int, **kwargs: object) -> None:
    journal.mine().note("returned", last)


def main() -> int:
    """Set the process up and run it."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    folder, seat, seed = sys.argv[1:]
    worker = Worker(Path(folder), int(seat), seed)
    # Before django_hilo registers its own: it is called after that.
    atexit.register(worker.end)
    django.setup()
    listen()
    if os.environ.get("HILO_STRESS_SABOTAGE"):
        from tests.stress import sabotage

        sabotage.break_product(os.environ["HILO_STRESS_SABOTAGE"])
    if os.environ.get("HILO_STRESS_ALONE"):
        return worker.take_one()
    return worker.run()


if __name__ == "__main__":
    sys.exit(main())
