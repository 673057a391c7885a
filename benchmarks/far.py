"""The same on servers that are 1 and 10 ms away, where round trips count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from django.db import connections

from benchmarks import graph, reservations
from benchmarks.bench import Bench
from benchmarks.databases import (
    FAR,
    MARIADB,
    MYSQL,
    POSTGRES,
    TITLES,
    empty,
    reached_by,
)
from benchmarks.keys import HILO, MODELS, OURS, beside_each
from benchmarks.proxy import in_process
from benchmarks.results import Finding, Result, Skipped, compared
from benchmarks.rounds import by_clock, interleaved
from benchmarks.shop.models import PrefetchedLine, PrefetchedOrder
from django_hilo.generator import return_ranges

# Orders of a graph, by the milliseconds that a round trip takes longer.
ORDERS = {1: 10_000, 10: 1_000}
PORTS = {POSTGRES: 5432, MARIADB: 3306, MYSQL: 3306}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare requests, graphs and reservations over a proxy."""
    for alias, port in PORTS.items():
        if not bench.has(alias):
            yield Skipped(f"{TITLES[alias]} far away: it is not there.")
            continue
        server = connections[alias].settings_dict
        for away, orders in ORDERS.items():
            delay = away / 1000
            host, behind = server["HOST"], int(server["PORT"] or port)
            with (
                in_process(host, behind, delay) as through,
                reached_by(alias, "127.0.0.1", through),
            ):
                try:
                    where = f"{TITLES[alias]}, {away} ms away"
                    yield from requests(bench, where)
                    yield from graphs(bench, TITLES[alias], away, orders)
                    yield from reservation(bench, where)
                finally:
                    return_ranges(FAR)


def requests(bench: Bench, where: str) -> Iterator[Result]:
    """Compare the whole time of orders, each in a transaction."""
    for found in graph.requests(bench, FAR, where, bench.scaled(30, 3)):
        if found.key.endswith("_wall"):
            yield replace(found, key=found.key.replace("_wall", "_far"))


def graphs(bench: Bench, title: str, away: int, orders: int) -> Iterator[Result]:
    """Compare the whole time of many orders in one transaction."""
    count = bench.scaled(orders, orders // 20)
    where = f"{title}, {count:,} orders, {away} ms away"
    turns = {
        name: partial(graph.in_bulk, *graph.GRAPHS[name], FAR, count)
        for name in (*MODELS, graph.LOOP)
    }
    pairs = {"graph_loop_far": (graph.LOOP, HILO)}
    if title == TITLES[POSTGRES]:
        models = (PrefetchedOrder, PrefetchedLine)
        turns[graph.PREFETCHED] = partial(graph.in_bulk, *models, FAR, count)
        for key, ours in OURS.items():
            pairs[f"graph{key}_prefetched_far"] = (graph.PREFETCHED, ours)
    took = interleaved(turns, bench.scaled(5, 3), bench.seconds(40), bench.seed)
    whole = by_clock(took)["_wall"]
    yield from beside_each("graph", whole, where, "ms", "_far")
    yield from compared(whole, pairs, where, "ms")
    empty(FAR, *(model for models in graph.GRAPHS.values() for model in models))


def reservation(bench: Bench, where: str) -> Iterator[Finding]:
    """Compare a reservation with a number of django-sequences."""
    for found in reservations.durations(bench, FAR, where):
        if isinstance(found, Result):
            yield replace(found, key=f"{found.key}_far")
