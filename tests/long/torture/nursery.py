"""The process that all others of a run are forked from, and that knows of their ends.

It has Django loaded, and no connection and no range, as a new process has. Started with
``python -m tests.long.torture.nursery FOLDER SEED``; it is spoken to in lines.
"""

import atexit
import codecs
import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import django

from tests.long.torture import notes

_PR_SET_CHILD_SUBREAPER = 36
# A terminal, or timeout(1), sends them to all processes of a run; the nursery must
# outlive that, to end its children.
_OF_THE_RUN = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


class Nursery:
    """The processes that were started, and the orphans of those that ended."""

    def __init__(self, folder: Path, seed: str) -> None:
        self._folder = folder
        self._seed = seed
        # Those that were started, by pid: seat.
        self._running: dict[int, int] = {}
        self._ended: list[tuple[int, int]] = []

    def start(self, seat: int, role: dict[str, Any]) -> int:
        """Fork; return 0 in the child."""
        pid = os.fork()
        if pid:
            self._running[pid] = seat
            return pid
        for number in _OF_THE_RUN:
            signal.signal(number, signal.SIG_DFL)
        errors = self._folder / f"{seat:04}.stderr"
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        notes.open_for(self._folder, seat)
        self._play(seat, role)
        return 0

    def _play(self, seat: int, role: dict[str, Any]) -> None:
        try:
            guest = role.pop("guest", None)
            if guest:
                from tests.long.torture.guests import GUESTS

                GUESTS[guest](**role)
                return
            from tests.long.torture.plan import plan_of
            from tests.long.torture.process import Process

            Process(self._folder, self._seed, plan_of(self._seed, seat)).run()
        except Exception:
            notes.note("failed", traceback.format_exc())
            raise

    def look(self) -> dict[str, Any]:
        """Tell who runs and who ended."""
        self._reap()
        orphans = len(set(children()) - set(self._running))
        ended, self._ended = self._ended, []
        return {"running": self._running, "orphans": orphans, "ended": ended}

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            seat = self._running.pop(pid, None)
            if seat is not None:
                self._ended.append((seat, os.waitstatus_to_exitcode(status)))

    def end_by_force(self) -> None:
        """Kill all that are left, each after it has told where it hangs."""
        for pid in children():
            _send(pid, signal.SIGCONT)
            _send(pid, signal.SIGUSR1)
        if children():
            time.sleep(0.5)
        while children():
            for pid in children():
                _send(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.02)


def _import_drivers() -> None:
    """Import what a first connection imports, a first query and a first request.

    A child that is forked while another thread is importing waits for that for ever.
    """
    from django.db import connection

    codecs.lookup("idna")  # of the first host that is looked up
    connection.ops.compiler("SQLCompiler")
    if connection.vendor == "mysql":
        import MySQLdb.connections  # noqa: F401 - for the forks


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def children() -> list[int]:
    """Return the children of this process, its orphaned grandchildren too."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text().split()]


def main() -> None:
    """Start processes as told, until nobody speaks any more."""
    for number in _OF_THE_RUN:
        signal.signal(number, signal.SIG_IGN)
    folder, seed = sys.argv[1:]
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    # Before django_hilo registers its own: it is called after that.
    atexit.register(notes.note_end, "normally")
    django.setup()
    from django.urls import get_resolver

    from tests.long.torture import guests, listening, process  # noqa: F401 - for the forks

    assert get_resolver().url_patterns, "the admin is loaded"
    _import_drivers()
    listening.listen()
    listening.break_if_asked()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    nursery = Nursery(Path(folder), seed)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "start":
            task = json.loads(rest)
            pid = nursery.start(task.pop("seat"), task)
            if not pid:
                return
            print(pid, flush=True)
        else:
            print(json.dumps(nursery.look()), flush=True)
    nursery.end_by_force()


if __name__ == "__main__":
    main()
