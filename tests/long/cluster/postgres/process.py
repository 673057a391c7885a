"""A Django process that does what it is told, and keeps its memory in between."""

import json
import sys
from typing import Any

from tests.long.cluster.load import run_python
from tests.support.programs import Program

CODE = """
import json, logging, sys, time
import django; django.setup()
from django.apps import apps
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import Error, IntegrityError
from django_hilo import generator
from django_hilo.exceptions import HiLoError
from tests.support.patience import PATIENCE

class Warned(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage())

warned = []
logging.getLogger("django_hilo").addHandler(Warned(logging.WARNING))

def save(label):
    "Save a new object; tell its id, and what came of it."
    thing = apps.get_model(label)()
    try:
        if label != "records.Letter":
            # First, because an INSERT that is refused takes off the id of its save.
            type(thing).objects.assign_ids([thing])
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
    print(json.dumps([answers, warned]), flush=True)
"""


class Process(Program):
    """Stays until it is stopped or killed."""

    def __init__(self, environment: dict[str, str]) -> None:
        # What it has warned of so far.
        self.warned: list[str] = []
        super().__init__([sys.executable, "-c", CODE], environment)
        assert self.read() == "ready"

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

    def _tell(self, *command: Any, brief: bool = False) -> list[tuple[Any, str]]:
        answers, self.warned = json.loads(self.ask(json.dumps([brief, *command])))
        return [(what, fate) for what, fate in answers]


def django(environment: dict[str, str], *arguments: str, expect: int = 0) -> str:
    """Run a command of Django; return what it printed."""
    return run_python(environment, "-m", "django", *arguments, expect=expect)
