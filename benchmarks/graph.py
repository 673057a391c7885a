"""Orders with their lines: one order a transaction, and many at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from benchmarks.bench import Bench
from benchmarks.databases import POSTGRES, TITLES, empty
from benchmarks.keys import (
    AUTO,
    HILO,
    MODELS,
    OURS,
    beside_each,
    creator,
    new_keys,
)
from benchmarks.reservations import counted
from benchmarks.results import Finding, Peers, Result, compared
from benchmarks.rounds import (
    Spread,
    Taken,
    by_clock,
    interleaved,
    only_new_garbage,
    spreads,
    taken,
)
from benchmarks.saves import warm
from benchmarks.shop.models import (
    AutoOrder,
    Line,
    MixedLine,
    NumberLine,
    NumberOrder,
    Order,
    PrefetchedLine,
    PrefetchedOrder,
    SequencesLine,
    SequencesOrder,
    TextLine,
    TextOrder,
)

ORDERS = 2_000
LINES = 5
# Orders of a turn, each in a transaction of its own.
REQUESTS = 10
LOOP = "CharField, ids of a loop"
PREFETCHED = "BigAutoField, nextval()"
MIXED = "HiLoField, lines with BigAutoField"
GRAPHS = {
    **MODELS,
    # What Django and the database take for text, whoever makes it.
    LOOP: (TextOrder, TextLine),
    MIXED: (Order, MixedLine),
}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on each database."""
    for alias in bench.aliases:
        rounds = bench.scaled(60, 5)
        yield from requests(bench, alias, TITLES[alias], rounds)
        yield from graphs(bench, alias)
        yield statements(alias)


def requests(bench: Bench, using: str, where: str, rounds: int) -> Iterator[Result]:
    """Compare orders with their lines, each in a transaction."""
    warm(using)
    turns = {name: partial(_requests, *MODELS[name], using) for name in MODELS}
    with only_new_garbage():
        took = interleaved(turns, rounds, bench.seconds(15), bench.seed)
    for clock, figures in by_clock(took).items():
        yield from beside_each("request", figures, where, "ms", clock)


def graphs(bench: Bench, using: str) -> Iterator[Finding]:
    """Compare many orders with their lines in one transaction."""
    orders = bench.scaled(ORDERS, ORDERS // 10)
    for model in (Order, Line, NumberOrder, NumberLine):
        hold_numbers(model, using)
    turns = {
        name: partial(in_bulk, *models, using, orders)
        for name, models in GRAPHS.items()
    }
    if using == POSTGRES:
        models = (PrefetchedOrder, PrefetchedLine)
        turns[PREFETCHED] = partial(in_bulk, *models, using, orders)
    took = interleaved(turns, bench.scaled(15, 5), bench.seconds(40), bench.seed)
    for clock, figures in by_clock(took).items():
        yield from beside_each("graph", figures, TITLES[using], "ms", clock)
    figures = by_clock(took)[""]
    pairs = {"graph_loop": (LOOP, HILO), "graph_mixed": (AUTO, MIXED)}
    if PREFETCHED in turns:
        for key, ours in OURS.items():
            pairs[f"graph{key}_prefetched"] = (PREFETCHED, ours)
    yield from compared(figures, pairs, TITLES[using], "ms")
    if using == bench.server:
        title = f"CPU time of {orders:,} orders of {LINES} lines, {TITLES[using]}"
        yield Peers(title, "ms", spreads(figures, 1e3), "graph")
    empty(using, *(model for pair in GRAPHS.values() for model in pair))


def hold_numbers(model: Any, using: str) -> None:
    """Let the process have a range of 1,048,576 numbers: those before have as many."""
    for _ in range(60):
        model.objects.using(using).next_ids(20_000)


def statements(using: str) -> Result:
    """Count the statements of an order with its lines, in an open transaction."""
    warm(using)
    reserved = [1.0]
    while reserved[0]:
        with (
            counted() as reserved,
            transaction.atomic(using),
            CaptureQueriesContext(connections[using]) as queries,
        ):
            _create(Order, Line, using)
    empty(using, Order, Line)
    return Result("request_statements", TITLES[using], Spread.of([len(queries)]))


def in_bulk(order: Any, line: Any, using: str, count: int) -> Taken:
    """Return what a graph of so many orders takes, in empty tables."""
    empty(using, order, line)
    return taken(partial(_insert, order, line, using, count))


def _insert(order: Any, line: Any, using: str, count: int) -> None:
    """Insert a graph in as few statements as its keys allow."""
    orders = [order(name="chai", quantity=n) for n in range(count)]
    rows = order.objects.using(using)
    with transaction.atomic(using):
        _give_ids(order, orders, using)
        if order is not AutoOrder:
            lines = _lines(line, orders)
            _give_ids(line, lines, using)
            rows.bulk_create(orders)
        elif connections[using].features.can_return_rows_from_bulk_insert:
            rows.bulk_create(orders)
            lines = _lines(line, orders)
        else:
            for each in orders:
                each.save(using=using)
            lines = _lines(line, orders)
        line.objects.using(using).bulk_create(lines)


def _lines(line: Any, orders: list[Any]) -> list[Any]:
    return [line(order=each, quantity=n) for each in orders for n in range(LINES)]


def _give_ids(model: Any, objects: list[Any], using: str) -> None:
    if hasattr(model.objects, "assign_ids"):
        model.objects.using(using).assign_ids(objects)
    elif model in (SequencesOrder, SequencesLine, PrefetchedOrder, PrefetchedLine):
        numbers = new_keys(model, using, len(objects))
        for number, each in zip(numbers, objects, strict=True):
            each.id = number
    elif model in (TextOrder, TextLine):
        name = model._meta.model_name
        for number, each in enumerate(objects, 1):
            each.id = f"{name}/{number}-A"


def _requests(order: Any, line: Any, using: str) -> Taken:
    """Return what some orders take, each with its lines in a transaction."""

    def answer() -> None:
        for _ in range(REQUESTS):
            with transaction.atomic(using):
                _create(order, line, using)

    return taken(answer) / REQUESTS


def _create(order: Any, line: Any, using: str) -> None:
    """Create an order with its lines, as a view does."""
    made = creator(order, using)(name="chai")
    lines = _lines(line, [made])
    if line is SequencesLine:
        _give_ids(line, lines, using)
    line.objects.using(using).bulk_create(lines)
