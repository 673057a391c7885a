"""hilo_raise_max runs over and over while processes write, and gives nothing twice."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from django.db import OperationalError

from django_hilo.identifiers import parse
from tests.apps.numbers.models import Item
from tests.conftest import PREAMBLE, child_environment
from tests.management.test_raise_max import CASES, Case
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.programs import Program, programs
from tests.support.writers import Writer, writers

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 2 if CHOSEN == "sqlite" else 4
ROUNDS, ROWS = 4, 10
# No writer gets so far while the command looks at the rows.
JUMP = 100_000_000

RAISING = """
import sys, time
from io import StringIO
from django.core.management import call_command
from django.db import OperationalError
print("ready", flush=True)
runs = 0
while sys.stdin.readline():
    out = StringIO()
    try:
        call_command("hilo_raise_max", sys.argv[1], stdout=out)
    except OperationalError as error:
        if "locked" not in str(error):
            raise
    runs += 1
    print(out.getvalue().replace("\\n", " "), flush=True)
"""


@contextmanager
def raising(collection: str) -> Iterator[Callable[[], str]]:
    """A process that runs the command each time it is asked, and tells what it said."""
    command = [sys.executable, "-c", PREAMBLE + RAISING, collection]
    with programs(Program) as start:
        program = start(command, child_environment())
        assert program.read() == "ready"
        yield lambda: program.ask("run")
        program.stop()


class Saved(NamedTuple):
    start: float
    end: float
    ids: list[Any]


class Work:
    """What one process saves, some rows at a time, until it is to stop."""

    def __init__(self, writer: Writer, model: str, stop: threading.Event) -> None:
        self.writer, self.model, self.stop = writer, model, stop
        self.saved: list[Saved] = []

    def run(self) -> None:
        while not self.stop.is_set():
            start = time.monotonic()
            ids = self.writer.save(self.model, ROWS)
            self.saved.append(Saved(start, time.monotonic(), ids))

    def was_done_in(self, start: float, end: float) -> bool:
        return any(some.start < end and some.end > start for some in self.saved)

    def wait_for_ids_over(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (self.saved and number_of(self.saved[-1].ids[-1]) > number):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_twice_and_never_down(case):
    stop, runs, seen = threading.Event(), [], []
    with (
        writers() as start,
        raising(case.collection) as run,
        ThreadPoolExecutor(WRITERS) as threads,
    ):
        works = [Work(start(), case.model.__name__, stop) for _ in range(WRITERS)]
        futures = [threads.submit(work.run) for work in works]
        try:
            give_up_at = time.monotonic() + PATIENCE
            beside_all = 0
            while beside_all < ROUNDS:
                assert time.monotonic() < give_up_at, "the command ran alone"
                imported = case.last() + JUMP
                insert_between_writers(case, imported)
                runs.append(raise_over(imported, run, case, seen))
                for work in works:
                    work.wait_for_ids_over(imported)
                beside_all += all(work.was_done_in(*runs[-1]) for work in works)
                run()  # with nothing to do, as a timer runs it
                seen.append(case.last())
        finally:
            stop.set()
        for future in futures:
            future.result(PATIENCE)

    assert seen == sorted(seen), "Max fell"
    ids = [key for work in works for some in work.saved for key in some.ids]
    assert len(set(ids)) == len(ids) >= WRITERS * ROUNDS * ROWS
    assert case.model.objects.count() == len(ids) + len(runs)


def insert_between_writers(case: Case, number: int) -> None:
    """Insert it; SQLite's queue of writers is no queue."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return case.insert_by_sql(number)
        except OperationalError:
            assert time.monotonic() < deadline


class Run(NamedTuple):
    start: float
    end: float


def raise_over(number: int, run: Callable[[], str], case: Case, seen: list[int]) -> Run:
    """Run the command until the counter is over a row; return when it began and ended.

    On SQLite a run may find the file locked.
    """
    deadline = time.monotonic() + PATIENCE
    start = time.monotonic()
    while True:
        told = run()
        seen.append(case.last())
        if seen[-1] >= number:
            # Ranges of integer keys may start over the rows by themselves.
            assert f"to {number}." in told or case.model is Item
            return Run(start, time.monotonic())
        assert time.monotonic() < deadline, told


def number_of(key: Any) -> int:
    return key if isinstance(key, int) else parse(key).number
