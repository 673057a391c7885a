"""hilo_raise_max runs over and over while processes write, and gives nothing twice."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from django.db import OperationalError, connection, models

from django_hilo.gapless import last_gapless_number
from django_hilo.identifiers import parse
from django_hilo.targets import resolve
from tests.conftest import PREAMBLE, PROJECT, child_environment
from tests.databases import CHOSEN
from tests.numbers.models import Item
from tests.patience import PATIENCE
from tests.records.models import Letter, Order
from tests.writers import Writer, writers

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
while not sys.stdin.readline().startswith("stop"):
    out = StringIO()
    try:
        call_command("hilo_raise_max", sys.argv[1], stdout=out)
    except OperationalError as error:
        if "locked" not in str(error):
            raise
    runs += 1
    print(out.getvalue().replace("\\n", " "), flush=True)
"""


# The command as it is, held up between its look at rows and counter and its write.
HELD_UP = """
import sys
from django.core.management import call_command
from django_hilo.management.commands.hilo_raise_max import Command
go_on = Command.raise_if_lower
def raise_if_lower(*arguments):
    print("looked", flush=True)
    sys.stdin.readline()
    go_on(*arguments)
Command.raise_if_lower = raise_if_lower
call_command("hilo_raise_max", sys.argv[1])
"""


class Case(NamedTuple):
    model: type[models.Model]
    collection: str
    insert: str
    last: Callable[[], int]

    def insert_by_sql(self, number: int) -> None:
        """Insert a row that no counter knows of, as an import by SQL does."""
        key = number if self.model is Item else f"{self.collection}/{number}"
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with connection.cursor() as cursor:
                    cursor.execute(self.insert, [key])
            except OperationalError:  # SQLite's queue of writers is no queue
                assert time.monotonic() < deadline
            else:
                return


def last_of(model: type[models.Model]) -> Callable[[], int]:
    def last() -> int:
        target = resolve(model)
        return target.source.read_max(target.using)

    return last


CASES = {
    "orders": Case(
        Order,
        "orders",
        "INSERT INTO records_order (id, name) VALUES (%s, '')",
        last_of(Order),
    ),
    "letters": Case(
        Letter,
        "letters",
        "INSERT INTO records_letter (id) VALUES (%s)",
        lambda: last_gapless_number("letters"),
    ),
    "items": Case(
        Item,
        "numbers_item",
        "INSERT INTO numbers_item (id, name) VALUES (%s, '')",
        last_of(Item),
    ),
}


@contextmanager
def raising(collection: str) -> Iterator[Callable[[], str]]:
    """A process that runs the command each time it is asked, and tells what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + RAISING, collection],
        cwd=PROJECT,
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run() -> str:
        process.stdin.write("run\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"The command ended with {process.wait(PATIENCE)}."
        return line

    try:
        assert process.stdout.readline() == "ready\n"
        yield run
        process.stdin.write("stop\n")
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stdin.close()


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
                case.insert_by_sql(imported)
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_saw_may_be_old_when_it_writes(case):
    with writers() as start:
        before = start().save(case.model.__name__, 1)
        imported = case.last() + 5
        case.insert_by_sql(imported)
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + HELD_UP, case.collection],
            cwd=PROJECT,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout.readline() == "looked\n"
            new = start().take(case.model.__name__, 500)
            last = case.last()
            assert last > imported
            told, _ = process.communicate("go on\n", PATIENCE)
        finally:
            process.kill()
            process.communicate()
        assert (process.returncode, case.last()) == (0, last), told
        assert f"to {imported}." in told
        after = start().save(case.model.__name__, 40)
        ids = [*before, *new, *after]
        assert len(set(ids)) == len(ids)
