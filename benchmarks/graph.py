"""Orders with their lines: all ids are known before the first insert."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import transaction

from benchmarks.bench import Bench
from benchmarks.databases import POSTGRES, TITLES, empty
from benchmarks.results import Finding, Peers, Result, Skipped
from benchmarks.rounds import interleaved, ratio, seconds_of, spreads
from benchmarks.shop.models import (
    AutoLine,
    AutoOrder,
    Line,
    NumberLine,
    NumberOrder,
    Order,
    TextLine,
    TextOrder,
    UuidLine,
    UuidOrder,
)

ORDERS = 10_000
LINES = 5
PAIRS = {
    "HiLoField": (Order, Line),
    "HiLoBigAutoField": (NumberOrder, NumberLine),
    "BigAutoField": (AutoOrder, AutoLine),
    "UUIDField, uuid4": (UuidOrder, UuidLine),
    # What Django and PostgreSQL take for text, whoever makes it.
    "CharField, ids of a loop": (TextOrder, TextLine),
}
# The ids of these come from the database, while it inserts.
LATE = {"BigAutoField"}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on PostgreSQL."""
    if not bench.has(POSTGRES):
        yield Skipped("a graph of orders and lines: set HILO_TEST_POSTGRES.")
        return
    yield from compared(bench, POSTGRES, TITLES[POSTGRES])


def compared(bench: Bench, using: str, where: str) -> Iterator[Finding]:
    """Compare the seconds of a graph, from the first object to the commit."""
    orders = bench.scaled(ORDERS, ORDERS // 10)
    turns = {
        name: partial(_turn, *models, name in LATE, using, orders)
        for name, models in PAIRS.items()
    }
    figures = interleaved(turns, bench.scaled(9, 5), bench.seconds(120), bench.seed)
    candidates = spreads(
        {name: [value * 1e3 for value in given] for name, given in figures.items()}
    )
    rivals = {"graph_auto": "BigAutoField", "graph_uuid": "UUIDField, uuid4"}
    for key, rival in rivals.items():
        pair = {name: candidates[name] for name in ("HiLoField", rival)}
        yield Result(key, where, ratio(figures, rival, "HiLoField"), pair, "ms")
    yield Peers(f"{orders:,} orders of {LINES} lines, {where}", "ms", candidates)


def _turn(order: Any, line: Any, is_late: bool, using: str, orders: int) -> float:
    empty(using, order, line)
    return seconds_of(partial(_insert, order, line, is_late, using, orders))


def _insert(order: Any, line: Any, is_late: bool, using: str, count: int) -> None:
    orders = [order(name="chai", quantity=n) for n in range(count)]
    with transaction.atomic(using):
        if is_late:
            order.objects.using(using).bulk_create(orders)
        else:
            _give_ids(order, orders, using)
        lines = [line(order=each, quantity=n) for each in orders for n in range(LINES)]
        if not is_late:
            _give_ids(line, lines, using)
        if not is_late:
            order.objects.using(using).bulk_create(orders)
        line.objects.using(using).bulk_create(lines)


def _give_ids(model: Any, objects: list[Any], using: str) -> None:
    if hasattr(model.objects, "assign_ids"):
        model.objects.using(using).assign_ids(objects)
    elif model in (TextOrder, TextLine):
        name = model._meta.model_name
        for number, each in enumerate(objects, 1):
            each.id = f"{name}/{number}-A"
