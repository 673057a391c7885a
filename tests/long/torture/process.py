"""One process: threads that do what is planned, forks, and an end."""

import atexit
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, connections

from django_hilo import conf
from django_hilo.exceptions import HiLoError
from tests.long.torture import forking, loans, lost, notes, web
from tests.long.torture.blocks import guarded, run_block, run_transaction
from tests.long.torture.errors import EXPECTED, OF_HILO, expect
from tests.long.torture.notes import note
from tests.long.torture.operations import ROWS, Operations
from tests.long.torture.plan import Plan, Step, plan_of_child

_STOP = "stop"
_MODULES = {
    "lend": loans.lend,
    "rest_ids": web.rest_ids,
    "rest_range": web.rest_range,
    "rest_gapless": web.rest_gapless,
    "rest_raise": web.rest_raise,
    "raven_range": web.raven_range,
}


class Process:
    """A process with a seat and a plan."""

    def __init__(self, folder: Path, seed: str, plan: Plan) -> None:
        self._folder = folder
        self._seed = seed
        self._plan = plan
        self._gate = forking.Gate()
        self._threads: list[threading.Thread] = []
        self._is_asked_to_end = False

    def run(self) -> None:
        """Do all that is planned; returns at the end of those that end normally."""
        notes.open_for(self._folder, self._plan.seat)
        if self._plan.profile["obeys_sigterm"]:
            signal.signal(signal.SIGTERM, self._ask_to_end)
        use_profile(self._plan.profile)
        self._threads = [
            threading.Thread(target=self._work, args=(number, steps))
            for number, steps in enumerate(self._plan.threads)
        ]
        for thread in self._threads:
            thread.start()
        first = self._threads[0]
        while first.is_alive() if self._plan.end == "abrupt" else self._is_at_work():
            time.sleep(0.02)
        end(self._plan.end)

    def _is_at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _ask_to_end(self, *_: object) -> None:
        self._is_asked_to_end = True

    def _is_over(self) -> bool:
        return self._is_asked_to_end or (self._folder / _STOP).exists()

    def _work(self, number: int, steps: Iterable[Step]) -> None:
        forking.remember_connection()
        hand = Hand(self._plan.seat, number, self._fork, self._fork_inside)
        try:
            for step in steps:
                if self._is_over():
                    break
                self._gate.pass_through()
                hand.do(step)
        finally:
            connections.close_all()

    def _fork(self, seat: int) -> None:
        """Fork between two steps, while the other threads are at work."""
        me = threading.current_thread()
        others = [thread for thread in self._threads if thread is not me]
        notes.note("forking")  # opens the journal, which fork() writes to
        if forking.fork(self._gate, others, seat) == 0:
            self._become_child(seat)

    def _fork_inside(self, seat: int) -> None:
        """Fork in the midst of a transaction."""
        notes.note("forking")
        if forking.fork_here(seat) == 0:
            if connection.vendor == "sqlite":
                # It cannot use a file that its parent has open.
                notes.open_for(self._folder, seat)
                end("_exit")
            self._become_child(seat)

    def _become_child(self, seat: int) -> None:
        """Work on connections of the child's own, and end it."""
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            notes.open_for(self._folder, seat)
            lost.forget()
            for alias in connections:
                if hasattr(connections._connections, alias):  # type: ignore[attr-defined]
                    del connections[alias]
            plan = plan_of_child(self._seed, seat)
            hand = Hand(seat, 0, self._fork, self._fork_inside)
            for step in plan.threads[0]:
                if (self._folder / _STOP).exists():
                    break
                hand.do(step)
            connections.close_all()
            if plan.end == "exit":
                # The frames of the parent are not the child's to leave: as the
                # children of multiprocessing, it calls the hooks itself.
                atexit._run_exitfuncs()
                os._exit(0)
            end(plan.end)
        except BaseException:
            note("failed", traceback.format_exc())
            raise
        finally:
            os._exit(1)


class Hand:
    """Does the steps of one thread."""

    def __init__(
        self,
        seat: int,
        thread: int,
        fork: Callable[[int], None],
        fork_inside: Callable[[int], None],
    ) -> None:
        self._operations = Operations(seat, thread)
        self._special: dict[str, Callable[..., Any]] = {
            **_MODULES,
            "fork": fork,
            "fork_inside": fork_inside,
            "die": die,
            "die_inside": die,
        }

    def do(self, step: Step) -> None:
        """Do a step outside transactions; whatever happens, the next one follows."""
        if step.kind == "transaction":
            run_transaction(step, self._do_inside)
            return
        note("step", step.kind)
        try:
            self._call(step.kind, step.arguments)
            note("did", step.kind)
        except EXPECTED as error:
            expect(error)
        except Exception:
            note("failed", traceback.format_exc())
            connections.close_all()

    def _do_inside(self, step: Step) -> None:
        if step.kind == "block":
            run_block(step, self._do_inside)
            return
        note("step", f"{step.kind}, inside")
        arguments = dict(step.arguments)
        catches = arguments.pop("catches", False)
        try:
            if catches and step.kind in ROWS:
                with guarded():
                    self._call(step.kind, arguments)
            else:
                self._call(step.kind, arguments)
        except OF_HILO as error:
            if not catches:
                raise
            self._go_on(error, step.kind)
        else:
            note("did", f"{step.kind}, inside")

    def _go_on(self, error: HiLoError, kind: str) -> None:
        """Go on in the transaction, as a caller may who caught an error of ours."""
        expect(error)
        # On SQLite it is the caller's connection that could not, and the savepoint of
        # rows is lost where the caller's session was ended meanwhile.
        is_untouched = connection.vendor != "sqlite" and kind not in ROWS
        # The first integer key of a process looks at the caller's rows.
        was_ended = getattr(connection.connection, "closed", False)
        if connection.needs_rollback and is_untouched and not was_ended:
            note("failed", f"A transaction was doomed by {type(error).__name__}.")

    def _call(self, kind: str, arguments: Any) -> None:
        special = self._special.get(kind)
        call = special or getattr(self._operations, kind)
        call(**arguments)


def use_profile(profile: Any) -> None:
    """Set what differs among processes; no connection was made yet."""
    settings.HILO = {**settings.HILO, **profile.get("hilo", {})}
    conf.settings.forget()
    database = connections.settings["default"]
    database["CONN_MAX_AGE"] = profile.get("conn_max_age", 0)
    if profile.get("strict"):
        database["OPTIONS"] = _stricter(dict(database["OPTIONS"]), connection.vendor)


def _stricter(options: dict[str, Any], vendor: str) -> dict[str, Any]:
    """Return options under which the caller's transactions see and wait for less."""
    if vendor == "postgresql":
        from django.db.backends.postgresql.psycopg_any import IsolationLevel

        options["isolation_level"] = IsolationLevel.SERIALIZABLE
    elif vendor == "mysql":
        options["isolation_level"] = "repeatable read"
    else:
        options["transaction_mode"] = "DEFERRED"
    return options


def die() -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def end(how: str) -> None:
    """End in the planned way; a normal end is to return, which this does."""
    if how == "kill":
        die()
    if how in ("_exit", "abrupt"):
        note("ended", how)
        os._exit(0)
    sys.stdout.flush()
