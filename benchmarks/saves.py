"""`create()`, a row at a time, beside other keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.keys import MODELS, SEQUENCES, beside_each, creator
from benchmarks.reservations import counted
from benchmarks.results import Finding, Peers, Result, compared
from benchmarks.rounds import (
    PROCESSOR,
    Spread,
    interleaved,
    only_new_garbage,
    seconds_of,
    spreads,
)
from benchmarks.shop.models import (
    GaplessOrder,
    NumberOrder,
    Order,
    UlidOrder,
    UuidOrder,
)

# Of a turn. The fewer, the more rounds there are, and the less the machine changes
# inside one.
ROWS = 10
# Of a turn that is one transaction: its commit is no part of a save.
TOGETHER = 50
GAPLESS = "GaplessIdField"
ORDERS = {
    GAPLESS: GaplessOrder,
    **{name: order for name, (order, _) in MODELS.items()},
    "UUIDField, uuid4": UuidOrder,
    "CharField, ULID": UlidOrder,
}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare rows on each database."""
    for alias in bench.aliases:
        yield statements(alias)
        warm(alias)
        of_one = (GAPLESS, *MODELS)
        together = {name: partial(_in_one, ORDERS[name], alias) for name in of_one}
        alone = {name: partial(turn, model, alias) for name, model in ORDERS.items()}
        rounds, seconds = bench.scaled(150, 9), bench.seconds(15)
        with only_new_garbage():
            processor = interleaved(together, rounds, seconds, bench.seed)
            whole = interleaved(alone, rounds, seconds, bench.seed)
        empty(alias, *ORDERS.values())
        for clock, figures in (("", processor), ("_wall", whole)):
            yield from beside_each("create", figures, TITLES[alias], "us a row", clock)
            pairs = {f"create_gapless{clock}": (SEQUENCES, GAPLESS)}
            yield from compared(figures, pairs, TITLES[alias], "us a row")
        if alias == bench.server:
            title = f"`create()` and its commit, {TITLES[alias]}"
            yield Peers(title, "us a row", spreads(whole, 1e6), "create")


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
    save = creator(model, alias)
    for number in range(rows):
        save(name="chai", quantity=number)


def turn(model: Any, alias: str) -> float:
    """Return the seconds of a row with its commit."""
    return seconds_of(partial(create, model, alias, ROWS)) / ROWS


def _in_one(model: Any, alias: str) -> float:
    def rows() -> None:
        with transaction.atomic(alias):
            create(model, alias, TOGETHER)

    return seconds_of(rows, PROCESSOR) / TOGETHER
