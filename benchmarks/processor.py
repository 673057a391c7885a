"""The processor's time that keys take in the program itself, beside `BigAutoField`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import call_command
from django.core.management.commands.loaddata import Command
from django.db import connections, transaction

from benchmarks import graph, saves
from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.graph import AUTO, HILO, INTEGER, LOOP, UUID7
from benchmarks.processes import FORK
from benchmarks.results import Finding, compared
from benchmarks.rounds import PROCESSOR, interleaved, only_new_garbage, seconds_of
from benchmarks.shop.models import AutoOrder, MixedLine, NumberOrder, Order

# Of a transaction.
ROWS = 50
ORDERS = 600
LOADED = 50_000
ROUNDS = 15
MIXED = "HiLoField, lines with BigAutoField"
GRAPHS = {
    **{name: graph.PAIRS[name] for name in (HILO, INTEGER, AUTO, UUID7, LOOP)},
    MIXED: (Order, MixedLine),
}
REQUESTS = (HILO, INTEGER, AUTO)
FIXTURES = {HILO: Order, INTEGER: NumberOrder, AUTO: AutoOrder}

Turns = dict[str, Callable[[], float]]


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare rows, requests, graphs and fixtures on each database."""
    for alias in bench.aliases:
        saves.warm(alias)
        rows: Turns = {
            name: partial(_create, saves.MODELS[name], alias)
            for name in (HILO, INTEGER, AUTO, UUID7)
        }
        requests: Turns = {
            name: partial(graph.requests, *GRAPHS[name], alias, PROCESSOR)
            for name in REQUESTS
        }
        graphs: Turns = {
            name: partial(graph.in_bulk, *models, alias, ORDERS, PROCESSOR)
            for name, models in GRAPHS.items()
        }
        with only_new_garbage():
            figures = interleaved(rows, bench.scaled(200, ROUNDS), seed=bench.seed)
            answers = interleaved(requests, bench.scaled(200, ROUNDS), seed=bench.seed)
        pairs = {
            "create_text": (AUTO, HILO),
            "create_integer": (AUTO, INTEGER),
            "create_text_uuid7": (UUID7, HILO),
        }
        yield from compared(figures, pairs, TITLES[alias], "us a row")
        pairs = {"request_text": (AUTO, HILO), "request_integer": (AUTO, INTEGER)}
        yield from compared(answers, pairs, TITLES[alias], "ms")
        pairs = {
            "graph_text": (AUTO, HILO),
            "graph_text_uuid7": (UUID7, HILO),
            "graph_loop": (LOOP, HILO),
            "graph_integer": (AUTO, INTEGER),
            "graph_mixed": (AUTO, MIXED),
        }
        figures = interleaved(graphs, bench.scaled(45, ROUNDS), seed=bench.seed)
        yield from compared(figures, pairs, TITLES[alias], "ms")
        yield from fixtures(bench, alias)
        empty(alias, *(model for models in GRAPHS.values() for model in models))


def _create(model: Any, alias: str) -> float:
    def together() -> None:
        with transaction.atomic(alias):
            saves.create(model, alias, ROWS)

    return seconds_of(together, PROCESSOR) / ROWS


def fixtures(bench: Bench, alias: str) -> Iterator[Finding]:
    """Compare `loaddata`, each time in a new process."""
    count = bench.scaled(LOADED, LOADED // 25)
    with TemporaryDirectory() as folder:
        turns: Turns = {}
        for name, model in FIXTURES.items():
            path = Path(folder) / f"{name}.json"
            path.write_text(json.dumps(list(_rows(model, count))))
            turns[name] = partial(_load, alias, model, path)
        figures = interleaved(turns, ROUNDS, bench.seconds(300), bench.seed)
    pairs = {"fixture_text": (HILO, AUTO), "fixture_integer": (INTEGER, AUTO)}
    yield from compared(figures, pairs, TITLES[alias], "s")


def _rows(model: Any, count: int) -> Iterator[dict[str, Any]]:
    for number in range(1, count + 1):
        id = f"orders/{number}-A" if model is Order else number
        values = {"name": "chai", "quantity": number}
        yield {"model": model._meta.label_lower, "pk": id, "fields": values}


def _load(alias: str, model: Any, path: Path) -> float:
    empty(alias, model)
    connections.close_all()
    with ProcessPoolExecutor(1, FORK) as process:
        return process.submit(_loaded, alias, path).result()


def _loaded(alias: str, path: Path) -> float:
    load = partial(call_command, Command(), path, database=alias, verbosity=0)
    return seconds_of(load, PROCESSOR)
