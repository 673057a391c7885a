"""Processes that run on while somebody restores the database under them."""

import json
import sys
from contextlib import AbstractContextManager
from typing import Any

from django.db import models, transaction

from tests.conftest import PREAMBLE, child_environment
from tests.support import warm
from tests.support.programs import Program, programs
from tests.support.sql import execute

CODE = """
import json, sys
from django.db import IntegrityError, OperationalError
from django_hilo.counters import next_gapless_numbers
from django_hilo.generator import next_ids
from tests.apps.numbers.models import Item

def save(name, count):
    "Save new objects; tell each id, and whether its row went in."
    told = []
    while len(told) < count:
        instance = globals()[name]()
        try:
            if name != "Letter":
                # An INSERT that is refused takes off the id of its save.
                type(instance).objects.assign_ids([instance])
            instance.save()
        except OperationalError as error:
            if "locked" not in str(error):  # SQLite's queue of writers is no queue
                raise
        except IntegrityError:
            told.append((instance.pk, False))
        else:
            told.append((instance.pk, True))
    return told

def take(name, count):
    "Take ids for no rows."
    if name == "Letter":
        return [f"letters/{n}" for n in next_gapless_numbers("letters", count)]
    return next_ids(globals()[name], count)

def insert(name, key):
    globals()[name].objects.create(pk=key)

print("ready", flush=True)
for line in sys.stdin:
    action, *arguments = json.loads(line)
    print(json.dumps(globals()[action](*arguments)), flush=True)
"""


class Writer(Program):
    """A process that does what it is told, and keeps its memory in between."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", PREAMBLE + CODE]
        super().__init__(command, child_environment(), start=warm.Popen)
        assert self.read() == "ready"

    def save(self, name: str, count: int) -> list[Any]:
        """Save new objects of a model; return the ids of the rows that went in."""
        told = self.tell("save", name, count)
        refused = [key for key, saved in told if not saved]
        assert not refused, f"IntegrityError for {refused}"
        return [key for key, _ in told]

    def try_to_save(self, name: str, count: int) -> list[tuple[Any, bool]]:
        """Save as `save`; return each id, and whether its row went in."""
        return [(key, saved) for key, saved in self.tell("save", name, count)]

    def take(self, name: str, count: int) -> list[Any]:
        """Take ids for no rows."""
        return self.tell("take", name, count)

    def tell(self, *command: Any) -> Any:
        """Let the process do something, and return what it answered."""
        return json.loads(self.ask(json.dumps(command)))


def writers() -> AbstractContextManager[Any]:
    """Start writers by calling it; all end with the block."""
    return programs(Writer)


class Backup:
    """Copies of tables, which plain SQL takes and puts back."""

    def __init__(self, *backed_up: type[models.Model]) -> None:
        self.tables = [model._meta.db_table for model in backed_up]
        for table in self.tables:
            execute(f"CREATE TABLE backup_{table} AS SELECT * FROM {table}")

    def restore(self) -> None:
        """Put the tables back as they were, in one transaction."""
        with transaction.atomic():
            for table in self.tables:
                execute(f"DELETE FROM {table}")
                execute(f"INSERT INTO {table} SELECT * FROM backup_{table}")

    def drop(self) -> None:
        for table in self.tables:
            execute(f"DROP TABLE backup_{table}")
