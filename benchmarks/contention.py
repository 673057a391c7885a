"""Processes that write at once: beside counters in the database, and UUIDField."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db import transaction

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES, empty
from benchmarks.processes import rush
from benchmarks.results import Finding, Result, Skipped
from benchmarks.rounds import interleaved, ratio, spreads
from benchmarks.saves import warm
from benchmarks.shop.models import (
    AutoOrder,
    CountedOrder,
    Order,
    SequencesOrder,
    UuidOrder,
)

WRITERS = (8, 32, 64)
# That each process has created before.
ROWS_BEFORE = 10
LONG_WRITERS = 4
LONG = 0.02
HILO = "HiLoField"
MODELS = (AutoOrder, CountedOrder, Order, SequencesOrder, UuidOrder)


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare rows a second, and transactions a second."""
    if bench.server == SQLITE:
        yield Skipped(
            "processes that write at once: SQLite has one writer at a time; set "
            "HILO_TEST_POSTGRES."
        )
        return
    for writers in WRITERS[: bench.scaled(3, 1)]:
        yield from rows(bench, bench.server, writers)
    yield from long_transactions(bench, bench.server)
    empty(bench.server, *MODELS)


def rows(bench: Bench, using: str, writers: int) -> Iterator[Finding]:
    """Compare the rows that some processes create in a second."""
    figures = rates(
        bench,
        using,
        writers,
        {
            HILO: partial(_create, Order, using),
            "BigAutoField": partial(_create, AutoOrder, using),
            "a counter row per insert": partial(CountedOrder.create, using),
            "django-sequences": partial(SequencesOrder.create, using),
        },
    )
    where = f"{TITLES[using]}, {writers} processes"
    candidates = spreads(figures)
    for key, rival in (
        ("processes_counter", "a counter row per insert"),
        ("processes_sequences", "django-sequences"),
        ("processes_auto", "BigAutoField"),
    ):
        pair = {name: candidates[name] for name in (HILO, rival)}
        yield Result(key, where, ratio(figures, HILO, rival), pair, "rows/s")


def long_transactions(bench: Bench, using: str) -> Iterator[Finding]:
    """Compare transactions of 20 ms, as projects have them."""
    figures = rates(
        bench,
        using,
        LONG_WRITERS,
        {
            HILO: partial(_create_slowly, Order, using),
            "UUIDField, uuid4": partial(_create_slowly, UuidOrder, using),
        },
    )
    where = f"{TITLES[using]}, {LONG_WRITERS} processes"
    against = ratio(figures, HILO, "UUIDField, uuid4")
    yield Result("transactions", where, against, spreads(figures), "transactions/s")


def rates(
    bench: Bench, using: str, processes: int, calls: dict[str, Callable[[], object]]
) -> dict[str, list[float]]:
    """Return the calls in a second of processes that have been at work, by rounds."""
    seconds = 0.5 if bench.is_quick else 1.0
    turns = {
        name: partial(_rate, call, using, processes, seconds)
        for name, call in calls.items()
    }
    return interleaved(turns, bench.scaled(7, 3), bench.seconds(60), bench.seed)


def _rate(
    call: Callable[[], object], using: str, processes: int, seconds: float
) -> float:
    def get_to_work() -> None:
        warm(using)
        for _ in range(ROWS_BEFORE):
            call()

    return rush(processes, get_to_work, call, seconds).rate


def _create(model: Any, using: str) -> None:
    model.objects.using(using).create(name="chai")


def _create_slowly(model: Any, using: str) -> None:
    with transaction.atomic(using):
        _create(model, using)
        time.sleep(LONG)
