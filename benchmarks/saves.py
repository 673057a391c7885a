"""`create()`, a row at a time, beside AutoField and UUIDField."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.reservations import counted
from benchmarks.results import Finding, Peers, Result, compared
from benchmarks.rounds import (
    Figures,
    Spread,
    interleaved,
    only_new_garbage,
    seconds_of,
    spreads,
)
from benchmarks.shop.models import (
    AutoOrder,
    NumberOrder,
    Order,
    UlidOrder,
    Uuid7Order,
    UuidOrder,
)

# Rows of a turn, of one transaction and of one each. The fewer, the more rounds there
# are, and the less the machine changes inside one.
TOGETHER = 50
ALONE = 10
PICTURED = "PostgreSQL, autocommit"
MODELS = {
    "HiLoField": Order,
    "HiLoBigAutoField": NumberOrder,
    "BigAutoField": AutoOrder,
    "UUIDField, uuid4": UuidOrder,
    "UUIDField, uuid7": Uuid7Order,
    "CharField, ULID": UlidOrder,
}
PAIRS = {
    "create_auto": ("BigAutoField", "HiLoField"),
    "create_uuid7": ("UUIDField, uuid7", "HiLoField"),
}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare rows in autocommit and in a transaction, on each database."""
    for alias in bench.aliases:
        yield statements(alias)
        for in_atomic in (False, True):
            mode = "atomic()" if in_atomic else "autocommit"
            where = f"{TITLES[alias]}, {mode}"
            rounds, seconds = bench.scaled(200, 9), bench.seconds(12)
            figures = timed(alias, in_atomic, rounds, seconds, bench.seed)
            yield from found(figures, where)


def found(figures: Figures, where: str) -> Iterator[Finding]:
    """Yield the ratios to both fields, and all candidates."""
    yield from compared(figures, PAIRS, where, "us a row")
    picture = "create" if where == PICTURED else ""
    candidates = spreads(figures, 1e6)
    yield Peers(f"`create()`, {where}", "us a row", candidates, picture)


def timed(
    alias: str,
    in_atomic: bool,
    rounds: int,
    seconds: float,
    seed: int,
) -> Figures:
    """Return the seconds of a row, round by round."""
    warm(alias)
    turns = {
        name: partial(turn, model, alias, in_atomic) for name, model in MODELS.items()
    }
    with only_new_garbage():
        figures = interleaved(turns, rounds, seconds, seed)
    empty(alias, *MODELS.values())
    return figures


def warm(alias: str) -> None:
    """Let the ranges be those of a process that has been at work.

    It has just begun one of 2,048 numbers: the ranges before have 2,016.
    """
    for model in (Order, NumberOrder):
        for _ in range(2_020):
            model.objects.using(alias).next_id()


def statements(alias: str) -> Result:
    """Count the statements of rows whose numbers are in memory."""
    warm(alias)
    reserved = [1.0]
    while reserved[0]:
        with (
            counted() as reserved,
            CaptureQueriesContext(connections[alias]) as queries,
        ):
            create(Order, alias, TOGETHER)
    each = len(queries) / TOGETHER
    return Result("create_statements", TITLES[alias], Spread.of([each]))


def create(model: Any, alias: str, rows: int) -> None:
    """Create some rows, one by one."""
    objects = model.objects.using(alias)
    for number in range(rows):
        objects.create(name="chai", quantity=number)


def turn(
    model: Any, alias: str, in_atomic: bool, clock: Callable[[], float] = perf_counter
) -> float:
    """Return the seconds of a row."""
    if not in_atomic:
        return seconds_of(lambda: create(model, alias, ALONE), clock) / ALONE

    def create_together() -> None:
        with transaction.atomic(alias):
            create(model, alias, TOGETHER)

    return seconds_of(create_together, clock) / TOGETHER
