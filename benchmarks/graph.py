"""Orders with their lines: in bulk, and one order a transaction."""

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
    Spread,
    interleaved,
    only_new_garbage,
    seconds_of,
    spreads,
)
from benchmarks.saves import warm
from benchmarks.shop.models import (
    AutoLine,
    AutoOrder,
    Line,
    NumberLine,
    NumberOrder,
    Order,
    TextLine,
    TextOrder,
    Uuid7Line,
    Uuid7Order,
    UuidLine,
    UuidOrder,
)

ORDERS = 10_000
LINES = 5
# Orders of a turn, each in a transaction of its own.
REQUESTS = 10
AUTO, HILO, INTEGER = "BigAutoField", "HiLoField", "HiLoBigAutoField"
UUID7 = "UUIDField, uuid7"
LOOP = "CharField, ids of a loop"
PAIRS = {
    HILO: (Order, Line),
    INTEGER: (NumberOrder, NumberLine),
    AUTO: (AutoOrder, AutoLine),
    "UUIDField, uuid4": (UuidOrder, UuidLine),
    UUID7: (Uuid7Order, Uuid7Line),
    # What Django and the database take for text, whoever makes it.
    LOOP: (TextOrder, TextLine),
}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on each database."""
    for alias in bench.aliases:
        is_pictured = alias == bench.server
        yield from both(bench, alias, TITLES[alias], "graph" * is_pictured)
        yield statements(alias)


def both(bench: Bench, using: str, where: str, picture: str = "") -> Iterator[Finding]:
    """Compare graphs of many orders, and orders one by one."""
    orders = bench.scaled(ORDERS, ORDERS // 10)
    turns = {
        name: partial(in_bulk, *models, using, orders) for name, models in PAIRS.items()
    }
    figures = interleaved(turns, bench.scaled(7, 3), bench.seconds(60), bench.seed)
    returns = connections[using].features.can_return_rows_from_bulk_insert
    late = "graph_auto" if returns else "graph_one_by_one"
    pairs = {
        late: (AUTO, HILO),
        "graph_uuid": ("UUIDField, uuid4", HILO),
        "graph_uuid7": (UUID7, HILO),
    }
    yield from compared(figures, pairs, where, "ms")
    title = f"{orders:,} orders of {LINES} lines, {where}"
    yield Peers(title, "ms", spreads(figures, 1e3), picture)
    warm(using)
    turns = {name: partial(requests, *PAIRS[name], using) for name in (HILO, AUTO)}
    with only_new_garbage():
        figures = interleaved(turns, bench.scaled(60, 5), bench.seconds(8), bench.seed)
    yield from compared(figures, {"request": (AUTO, HILO)}, where, "ms")
    empty(using, *(model for pair in PAIRS.values() for model in pair))


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


def in_bulk(
    order: Any,
    line: Any,
    using: str,
    count: int,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """Return the seconds of a graph of so many orders, in empty tables."""
    empty(using, order, line)
    return seconds_of(partial(_insert, order, line, using, count), clock)


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
    elif model in (TextOrder, TextLine):
        name = model._meta.model_name
        for number, each in enumerate(objects, 1):
            each.id = f"{name}/{number}-A"


def requests(
    order: Any, line: Any, using: str, clock: Callable[[], float] = perf_counter
) -> float:
    """Return the seconds of an order with its lines, in a transaction."""

    def answer() -> None:
        for _ in range(REQUESTS):
            with transaction.atomic(using):
                _create(order, line, using)

    return seconds_of(answer, clock) / REQUESTS


def _create(order: Any, line: Any, using: str) -> None:
    """Create an order with its lines, as a view does."""
    made = order.objects.using(using).create(name="chai")
    line.objects.using(using).bulk_create(_lines(line, [made]))
