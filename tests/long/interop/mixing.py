"""Foreign and Django processes that draw numbers from one counter at the same time.

Each is a program that answers a line with a line:

    open <generator> <name>=<value> ...     (Django: the deconstructed source, as JSON)
    create, drop                            (SQL, where the system makes its counters)
    draw <count> <file> <start> <seconds>

``draw`` spreads its calls over the seconds after ``start``, which is a time since 1970,
and writes a line a number to the file: the microseconds since 1970, and the number. An
answer that begins with "error" tells what failed.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction

from django_hilo.generator import next_numbers
from tests.conftest import child_environment
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.programs import Program
from tests.support.sql import execute

HERE = Path(__file__).parent
only_on_postgres = pytest.mark.skipif(
    CHOSEN != "postgres", reason="here these systems have their counters on PostgreSQL"
)

# Twice by 6 processes: 20,400 numbers, in 2,040 blocks of 10.
EACH = 1700
SECONDS = 1.5
FEWEST = 20_000
# At random it would be some 700, with blocks of 50 some 200.
FEWEST_TURNS = 100


def environment() -> dict[str, str]:
    """Where the test's database is, as Django's processes and libpq read it."""
    server = connection.settings_dict
    return {
        **child_environment(),
        "PYTHONPATH": str(PROJECT),
        "PGHOST": server["HOST"],
        "PGPORT": server["PORT"] or "5432",
        "PGUSER": server["USER"],
        "PGPASSWORD": server["PASSWORD"],
        "PGDATABASE": str(server["NAME"]),
        # An error, not a hang, for who waits for a transaction of the test.
        "PGOPTIONS": f"-c lock_timeout={PATIENCE}s",
    }


class Drawn(NamedTuple):
    number: int
    microseconds: int
    owner: int
    side: str


class Peer(Program):
    """A process that draws; its side is the name of its system."""

    def __init__(
        self, side: str, command: Sequence[str], folder: Path, **variables: str
    ) -> None:
        errors = folder / f"{side}.errors"
        super().__init__(command, {**environment(), **variables}, errors, HERE)
        self.side = side
        self.file = folder / f"{self.process.pid}.numbers"

    def do(self, *words: object) -> str:
        return self.ask(" ".join(map(str, words)))

    def receive(self) -> str:
        answer = super().receive()
        assert not answer.startswith("error"), answer
        return answer

    def send_draw(self, count: int, start: float = 0, seconds: float = 0) -> None:
        self.send(f"draw {count} {self.file} {start} {seconds}")

    def drawn(self) -> list[Drawn]:
        assert self.receive()
        pairs = (line.split() for line in self.file.read_text().splitlines())
        owner = self.process.pid
        return [Drawn(int(n), int(at), owner, self.side) for at, n in pairs]

    def draw(self, count: int) -> list[int]:
        self.send_draw(count)
        return [drawn.number for drawn in self.drawn()]


def django_peer(folder: Path, capacity: int, side: str = "django") -> Peer:
    return Peer(
        side,
        [sys.executable, str(HERE / "draw_source.py")],
        folder,
        DJANGO_SETTINGS_MODULE="tests.long.interop.small_ranges",
        HILO_TEST_CAPACITY=str(capacity),
    )


class Mixed:
    """All numbers of one run."""

    def __init__(self, drawn: Iterable[Drawn]) -> None:
        self.by_number = sorted(drawn)
        self.by_time = sorted(self.by_number, key=lambda one: one.microseconds)
        self.duplicates = len(self.by_number) - len(
            {one.number for one in self.by_number}
        )

    def overlap(self) -> bool:
        """Whether all drew beside each other, and enough."""
        orders = self.by_number, self.by_time
        return len(self.by_number) >= FEWEST and all(map(self._is_mixed, orders))

    def _is_mixed(self, order: list[Drawn]) -> bool:
        if changes([one.side for one in order]) < FEWEST_TURNS:
            return False
        places: dict[int, list[int]] = {}
        for place, one in enumerate(order):
            places.setdefault(one.owner, []).append(place)
        return max(map(min, places.values())) < min(map(max, places.values()))

    def __str__(self) -> str:
        return f"{len(self.by_number)} numbers, {self.duplicates} duplicates"


def has_duplicates(mixed: Mixed) -> bool:
    return mixed.duplicates > 0


@contextmanager
def schema(peer: Peer) -> Iterator[None]:
    """The tables and sequences of what a peer has opened, as its system makes them."""
    for statement in peer.do("create").split(";"):
        execute(statement)
    try:
        yield
    finally:
        for statement in peer.do("drop").split(";"):
            execute(statement)


def changes(values: Sequence[object]) -> int:
    return sum(a != b for a, b in itertools.pairwise(values))


def mix(
    peers: Sequence[Peer],
    shown: Callable[[Mixed], object],
    each: int = EACH,
    seconds: float = SECONDS,
) -> Mixed:
    """Let all begin at one moment, and again and again until something is shown.

    On a busy machine one may be through before another has begun.
    """
    give_up_at = time.monotonic() + PATIENCE
    drawn: list[Drawn] = []
    while True:
        start = time.time() + 0.1
        for peer in peers:
            peer.send_draw(each, start, seconds)
        drawn += [one for peer in peers for one in peer.drawn()]
        mixed = Mixed(drawn)
        if shown(mixed):
            return mixed
        assert time.monotonic() < give_up_at, mixed


def numbers_around_a_rollback(peer: Peer, source: Any) -> list[int]:
    """Return those that a peer and Django drew during a rollback, and after it."""
    with transaction.atomic():
        ours = next_numbers(source, 15)
        ContentType.objects.create(app_label="peer", model="order")  # one that writes
        theirs = peer.draw(25)  # which does not wait for our transaction
        transaction.set_rollback(True)
    return ours + theirs + peer.draw(25) + next_numbers(source, 25)
