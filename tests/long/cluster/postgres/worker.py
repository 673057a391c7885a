"""A process that takes ids and saves rows until it is told to end, whatever happens.

    python -m tests.long.cluster.postgres.worker FOLDER SEAT SEED

It ends when the file ``end`` is in the folder. Its journal (see tests.support.journal)
has a line per event:

``range TAG LOW HIGH`` reserved; ``returned TAG LAST`` gave back; ``given ID`` it has
this id; ``stood``, ``undone``, ``open ID`` what became of a row, the last where the
process cannot know; ``refused ID`` a new row whose id the table had;
``error TYPE TEXT``; ``warned TEXT`` by django_hilo; ``failed TEXT`` what must not
happen.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from tests.support.journal import Journal

STARTER = os.getppid()
# Short enough to be always at work, long enough for several on a small machine.
PAUSE = 0.002
PAUSE_AFTER_ERRORS = 0.05


class Undo(Exception):
    """Rolls a transaction back."""


class Worker:
    """Handles one request after the other, as a web process does."""

    def __init__(self, folder: Path, seat: int, seed: str) -> None:
        from tests.apps.records.models import Order

        self.folder = folder
        self.journal = Journal(folder, seat, "main")
        self.random = random.Random(f"{seed}/{seat}")
        self.model: Any = Order
        self.requests = (self.take, self.save, self.save_some, self.save_many)

    def run(self) -> None:
        while os.getppid() == STARTER and not (self.folder / "end").exists():
            self._handle(self.random.choice(self.requests))
            time.sleep(PAUSE)

    def _handle(self, request: Callable[[], None]) -> None:
        from django.core.signals import request_finished, request_started
        from django.db import Error

        from django_hilo.exceptions import HiLoError

        request_started.send(type(self))  # django closes what is of no use
        try:
            request()
        except Undo:
            pass
        except (Error, HiLoError) as error:
            self.journal.note("error", type(error).__name__, error)
            time.sleep(PAUSE_AFTER_ERRORS)
        finally:
            request_finished.send(type(self))

    def take(self) -> None:
        """Take ids for somebody else, who keeps them where we do not see them."""
        for id in self.model.objects.next_ids(self.random.randint(1, 3)):
            self.journal.note("given", id)

    def save(self) -> None:
        """Save an object, which gets its id on the way."""
        thing = self._new()
        with self._writing([thing]):
            thing.save()

    def save_some(self) -> None:
        """Save objects in a transaction, which may be rolled back."""
        from django.db import transaction

        things = [self._new() for _ in range(self.random.randint(1, 3))]
        with self._writing(things), transaction.atomic():
            for thing in things:
                thing.save()
            if self.random.random() < 0.3:
                raise Undo

    def save_many(self) -> None:
        """Save objects with one INSERT."""
        things = [self._new() for _ in range(self.random.randint(2, 6))]
        with self._writing(things):
            self.model.objects.bulk_create(things)

    def _new(self) -> Any:
        return self.model(name=f"by {os.getpid()} at {time.monotonic_ns()}")

    @contextmanager
    def _writing(self, things: list[Any]) -> Iterator[None]:
        from django.db import IntegrityError

        fate = "open"
        try:
            yield
            fate = "stood"
        except Undo:
            fate = "undone"
            raise
        except IntegrityError:
            fate = "refused"
            raise
        finally:
            for thing in things:
                if thing.pk is not None:
                    self.journal.note("given", thing.pk)
                    self.journal.note(fate, thing.pk)


class Warnings(logging.Handler):
    """Notes what django_hilo warns of."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self.journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        self.journal.note("warned", record.getMessage())


def main() -> None:
    """Set the process up and run it."""
    folder, seat, seed = sys.argv[1:]
    django.setup()
    from django_hilo.signals import range_reserved, range_returned

    worker = Worker(Path(folder), int(seat), seed)

    def note_range(reservation: Any, **kwargs: Any) -> None:
        span = reservation.range
        worker.journal.note("range", reservation.node_tag, span.low, span.high)

    def note_return(node_tag: str, last: int, **kwargs: Any) -> None:
        worker.journal.note("returned", node_tag, last)

    range_reserved.connect(note_range)
    range_returned.connect(note_return)
    logging.getLogger("django_hilo").addHandler(Warnings(worker.journal))
    try:
        worker.run()
    except Exception:
        worker.journal.note("failed", traceback.format_exc())
        raise


if __name__ == "__main__":
    main()
