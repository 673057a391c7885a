"""`create()`, a row at a time, beside AutoField and UUIDField."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import connections
from django.test.utils import CaptureQueriesContext

from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.reservations import counted
from benchmarks.results import Finding, Peers, Result, compared
from benchmarks.rounds import (
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

# Of a turn. The fewer, the more rounds there are, and the less the machine changes
# inside one.
ROWS = 10
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
    """Compare rows that are committed one by one, on each database."""
    for alias in bench.aliases:
        yield statements(alias)
        warm(alias)
        turns = {name: partial(turn, model, alias) for name, model in MODELS.items()}
        rounds, seconds = bench.scaled(200, 9), bench.seconds(12)
        with only_new_garbage():
            figures = interleaved(turns, rounds, seconds, bench.seed)
        empty(alias, *MODELS.values())
        yield from compared(figures, PAIRS, TITLES[alias], "us a row")
        title = f"`create()` and its commit, {TITLES[alias]}"
        picture = "create" * (alias == bench.server)
        yield Peers(title, "us a row", spreads(figures, 1e6), picture)


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
            create(Order, alias, ROWS)
    each = len(queries) / ROWS
    return Result("create_statements", TITLES[alias], Spread.of([each]))


def create(model: Any, alias: str, rows: int) -> None:
    """Create some rows, one by one."""
    objects = model.objects.using(alias)
    for number in range(rows):
        objects.create(name="chai", quantity=number)


def turn(model: Any, alias: str) -> float:
    """Return the seconds of a row."""
    return seconds_of(partial(create, model, alias, ROWS)) / ROWS
