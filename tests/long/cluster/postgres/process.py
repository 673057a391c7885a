"""A Django process that does what it is told, and keeps its memory in between."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.conftest import PROJECT
from tests.support.patience import LONGEST, PATIENCE

CODE = """
import json, sys, time
import django; django.setup()
from django.apps import apps
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import Error, IntegrityError
from django_hilo import generator
from django_hilo.exceptions import HiLoError
from tests.support.patience import PATIENCE

def save(label):
    "Save a new object; tell its id, and what came of it."
    thing = apps.get_model(label)()
    try:
        thing.save()
    except IntegrityError:
        return [thing.pk, "refused"]
    except (Error, HiLoError) as error:
        return [thing.pk, f"{type(error).__name__}: {error}"]
    return [thing.pk, "stood"]

def take(label):
    "Take an id for no row."
    begin = time.monotonic()
    try:
        return [generator.next_id(label), "taken"]
    except (Error, HiLoError) as error:
        return [round(time.monotonic() - begin, 3), f"{type(error).__name__}: {error}"]

own = settings.HILO
patience = {"LOCK_TIMEOUT": PATIENCE, "RETRY_FOR": PATIENCE}
print("ready", flush=True)
for line in sys.stdin:
    brief, action, count, *arguments = json.loads(line)
    settings.HILO = own if brief else {**own, **patience}
    answers = []
    for _ in range(count):
        request_started.send(None)
        answers.append(globals()[action](*arguments))
        request_finished.send(None)
    print(json.dumps(answers), flush=True)
"""


class Process:
    """Stays until it is stopped or killed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == "ready"

    def save(self, count: int, label: str = "records.Order") -> list[Any]:
        """Save new objects; return their ids."""
        told = self.try_to_save(count, label)
        assert {fate for _, fate in told} == {"stood"}, told
        return [pk for pk, _ in told]

    def try_to_save(
        self, count: int, label: str = "records.Order", *, brief: bool = False
    ) -> list[tuple[Any, str]]:
        """Try to save new objects; return the id and what came of it for each."""
        return self._tell("save", count, label, brief=brief)

    def take(self, count: int, label: str = "records.Order") -> list[str]:
        """Take ids for no rows."""
        told = self.try_to_take(count, label)
        assert {fate for _, fate in told} == {"taken"}, told
        return [id for id, _ in told]

    def try_to_take(
        self, count: int, label: str = "records.Order", *, brief: bool = False
    ) -> list[tuple[Any, str]]:
        """Try to take ids; return each, or the seconds until its error.

        ``brief`` with the limits of the settings, and not with patience.
        """
        return self._tell("take", count, label, brief=brief)

    def kill(self) -> None:
        """End the process before it can return anything."""
        self._process.kill()
        self._process.communicate()

    def _tell(self, *command: Any, brief: bool = False) -> list[tuple[Any, str]]:
        assert self._process.stdin is not None
        print(json.dumps([brief, *command]), file=self._process.stdin, flush=True)
        return [(what, fate) for what, fate in json.loads(self._read())]

    def _read(self) -> str:
        assert self._process.stdout is not None
        watchdog = threading.Timer(2 * PATIENCE, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        assert line, f"The process ended with {self._process.wait(PATIENCE)}."
        return line.strip()


@contextmanager
def processes() -> Iterator[Any]:
    """Start processes by calling it with their environment; all end with the block."""
    started: list[Process] = []

    def start(environment: dict[str, str]) -> Process:
        started.append(Process(environment))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()


def django(environment: dict[str, str], *arguments: str, expect: int = 0) -> str:
    """Run a command of Django; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "django", *arguments],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr
