"""Processes that write at once, with each kind of key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES, empty
from benchmarks.keys import AUTO, HILO, INTEGER, MODELS, OURS, SEQUENCES, UUID7, creator
from benchmarks.processes import rush
from benchmarks.results import Finding, Result, Skipped
from benchmarks.rounds import interleaved, ratio, spreads
from benchmarks.saves import warm
from benchmarks.shop.models import CountedOrder

WRITERS = (8, 32)
# That each process has created before.
ROWS_BEFORE = 10
COUNTER = "a counter row per insert"
NAMES = (HILO, INTEGER, AUTO, UUID7, SEQUENCES)
ORDERS: dict[str, Any] = {name: MODELS[name][0] for name in NAMES}
ORDERS[COUNTER] = CountedOrder
RIVALS = {"": AUTO, "_uuid7": UUID7, "_sequences": SEQUENCES, "_counter": COUNTER}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare the rows that all processes together create in a second."""
    yield Skipped(
        "processes that write at once on SQLite: it has one writer at a time."
    )
    for alias in bench.aliases:
        if alias != SQLITE:
            # More processes need more minutes than databases differ by.
            several = not bench.is_quick and alias == bench.server
            for writers in WRITERS if several else WRITERS[:1]:
                yield from rows(bench, alias, writers)
            empty(alias, *ORDERS.values())


def rows(bench: Bench, using: str, writers: int) -> Iterator[Result]:
    """Compare the rows that some processes create in a second."""
    turns = {
        name: partial(_rate, creator(model, using), using, writers, bench.is_quick)
        for name, model in ORDERS.items()
    }
    figures = interleaved(turns, bench.scaled(7, 3), bench.seconds(45), bench.seed)
    where = f"{TITLES[using]}, {writers} processes"
    candidates = spreads(figures)
    for key, ours in OURS.items():
        for end, rival in RIVALS.items():
            pair = {name: candidates[name] for name in (ours, rival)}
            against = ratio(figures, ours, rival)
            yield Result(f"processes{key}{end}", where, against, pair, "rows/s")


def _rate(
    create: Callable[..., object], using: str, processes: int, is_quick: bool
) -> float:
    call = partial(create, name="chai")

    def get_to_work() -> None:
        warm(using)
        for _ in range(ROWS_BEFORE):
            call()

    return rush(processes, get_to_work, call, 0.5 if is_quick else 1.0).rate
