"""A process that takes ids and saves rows until it is told to end, whatever happens.

    python -m tests.long.cluster.worker FOLDER SEAT SEED LABEL ...

LABEL is a model; one that is named twice is used more often. A gapless id is given with
the commit of its row: a rollback takes it back. The process ends when the file ``end``
is in the folder, and rests while ``rest`` is. Its journal (see tests.support.journal)
has a line per event, written before the process goes on:

``range COUNTER LOW HIGH`` reserved; ``given ID`` an object has it;
``stood``, ``undone``, ``open ID`` what became of a row, the last if the process cannot
know; ``refused ID`` a new row whose id the table had;
``call KIND SECONDS OUTCOME`` a call of django_hilo alone (``ids``) or one that writes
rows too (``rows``), and ``ok`` or the error with its code; ``retry CODE PLACE`` which
django_hilo tried again; ``emptied`` it gives up its ranges; ``resting``;
``warned CODE TEXT`` by django_hilo; ``failed TEXT`` what must not happen.
"""

import logging
import os
import random
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import django

django.setup()

from django.apps import apps  # noqa: E402 - needs the apps, as all below
from django.core.signals import request_finished, request_started  # noqa: E402
from django.db import Error, IntegrityError, transaction  # noqa: E402

from django_hilo.exceptions import HiLoError  # noqa: E402
from django_hilo.fields import GaplessIdField  # noqa: E402
from django_hilo.generator import return_ranges  # noqa: E402
from django_hilo.models import HiLoDocument  # noqa: E402
from django_hilo.signals import range_reserved  # noqa: E402
from tests.support.journal import Journal  # noqa: E402

STARTER = os.getppid()
# Short enough to be always at work, long enough for several on a small machine.
PAUSE = 0.002
# So that a server that is down is not asked all the time.
PAUSE_AFTER_ERRORS = 0.05


def is_gapless(model) -> bool:
    """Whether an id is taken in the transaction that saves its row."""
    return isinstance(model._meta.pk, GaplessIdField)


class Undo(Exception):
    """Rolls a transaction back."""


class Worker:
    """Handles one request after the other, as a web process does."""

    def __init__(self, folder: Path, seat: int, seed: str, labels: list[str]) -> None:
        self.folder = folder
        self.note = Journal(folder, seat, "main").note
        self.random = random.Random(f"{seed}/{seat}")
        self.models = [apps.get_model(label) for label in labels]
        self.with_ids_before = [each for each in self.models if not is_gapless(each)]
        self.requests = (self.take, self.save, self.save_some, self.save_many)

    def run(self) -> None:
        while os.getppid() == STARTER and not (self.folder / "end").exists():
            if (self.folder / "rest").exists():
                self.rest()
            elif self.random.random() < 0.02:
                self.handle(self.give_back)
            else:
                self.handle(self.random.choice(self.requests))
            time.sleep(PAUSE)
        self.note("emptied")  # by the end of the process

    def rest(self) -> None:
        self.note("resting")
        while (self.folder / "rest").exists() and os.getppid() == STARTER:
            time.sleep(0.02)

    def handle(self, request) -> None:
        request_started.send(type(self))  # django closes what is of no use
        try:
            request()
        except Undo:
            pass
        except (Error, HiLoError):
            time.sleep(PAUSE_AFTER_ERRORS)
        finally:
            request_finished.send(type(self))

    def take(self) -> None:
        """Save an object that got its id before, for no other purpose."""
        thing = self.new(self.random.choice(self.with_ids_before))
        with self.called("ids"):
            type(thing).objects.assign_ids([thing])
        self.note_id("given", thing)
        with self.saving([thing]):
            thing.save()

    def save(self) -> None:
        """Save an object, which gets its id on the way."""
        thing = self.new()
        with self.saving([thing]):
            thing.save()

    def save_some(self) -> None:
        """Save objects in a transaction, which may be rolled back."""
        things = [self.new() for _ in range(self.random.randint(1, 3))]
        with self.saving(things), transaction.atomic():
            for thing in things:
                thing.save()
            if self.random.random() < 0.3:
                raise Undo

    def save_many(self) -> None:
        """Save objects with one INSERT."""
        model = self.random.choice(self.models)
        things = [self.new(model) for _ in range(self.random.randint(2, 6))]
        with self.saving(things):
            model.objects.bulk_create(things)

    def give_back(self) -> None:
        """Return the ranges, as at the end of a process."""
        self.note("emptied")
        return_ranges()

    def new(self, model=None):
        name = f"by {os.getpid()} at {time.monotonic_ns()}"
        return (model or self.random.choice(self.models))(name=name)

    @contextmanager
    def saving(self, things):
        new = [thing for thing in things if thing.pk is None]
        # First, because an INSERT that is refused takes off the ids of its save.
        for thing in new:
            if not is_gapless(type(thing)):
                with self.called("ids"):
                    type(thing).objects.assign_ids([thing])
        fate = "open"
        try:
            with self.called("rows"):
                yield
            fate = "stood"
        except Undo:
            fate = "undone"
            raise
        except IntegrityError:
            fate = "refused"
            raise
        finally:
            for thing in new:
                if fate == "stood" or not is_gapless(type(thing)):
                    self.note_id("given", thing)
            for thing in things:
                if fate != "undone" or not is_gapless(type(thing)):
                    self.note_id(fate, thing)

    def note_id(self, word: str, thing) -> None:
        if isinstance(thing.pk, int):
            self.note(word, f"{thing._meta.db_table}/{thing.pk}")
        elif thing.pk is not None:
            self.note(word, thing.pk)

    @contextmanager
    def called(self, kind: str):
        started, outcome = time.monotonic(), "ok"
        try:
            yield
        except Undo:
            outcome = "undone"
            raise
        except BaseException as error:
            outcome = f"{type(error).__name__}:{code_of(error)}"
            raise
        finally:
            took = time.monotonic() - started
            self.note("call", kind, f"{took:.4f}", outcome)

    def note_range(self, reservation, **kwargs) -> None:
        # A sequence has the name of its column, "numbers_item.id".
        collection = reservation.collection.partition(".")[0]
        key = HiLoDocument.key(collection, reservation.node_tag)
        self.note("range", key, reservation.range.low, reservation.range.high)


class Log(logging.Handler):
    """Notes what django_hilo tries again, and what it warns of."""

    def __init__(self, note) -> None:
        super().__init__()
        self.note = note
        logger = logging.getLogger("django_hilo")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.args[-1] if isinstance(record.args, tuple) else None
        code = code_of(error) if isinstance(error, BaseException) else "none"
        if record.msg.startswith("Retrying"):
            self.note("retry", code, place_of(error))
        elif record.levelno >= logging.WARNING:
            self.note("warned", code, record.getMessage())


def code_of(error: BaseException | None) -> str:
    """Return the code of the driver's error that led to this one."""
    while error is not None:
        if error.args and isinstance(error.args[0], int):
            return str(error.args[0])
        error = error.__cause__
    return "none"


def place_of(error: BaseException) -> str:
    """Return whether an error came at connecting, at COMMIT, or in a statement."""
    names = {
        frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)
    }
    if "get_new_connection" in names:
        return "connect"
    return "commit" if "_commit" in names else "statement"


def main() -> None:
    """Set the process up and run it."""
    folder, seat, seed, *labels = sys.argv[1:]
    worker = Worker(Path(folder), int(seat), seed, labels)
    range_reserved.connect(worker.note_range)
    Log(worker.note)
    try:
        worker.run()
    except BaseException:
        worker.note("failed", traceback.format_exc())
        raise


if __name__ == "__main__":
    main()
