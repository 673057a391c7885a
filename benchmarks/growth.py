"""How often processes can reserve at once from one counter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES
from benchmarks.processes import rush
from benchmarks.results import Curve, Finding, Skipped
from django_hilo.counters import reserve

PROCESSES = (1, 2, 4, 8, 16, 32, 64)


def measure(bench: Bench) -> Iterator[Finding]:
    """Let more and more processes reserve ranges of one collection."""
    servers = [alias for alias in bench.aliases if alias != SQLITE]
    if not servers:
        yield Skipped("processes that reserve at once: set HILO_TEST_POSTGRES.")
        return
    rates: dict[str, list[tuple[float, float]]] = {}
    for using in servers:
        work = partial(reserve, "contended", 1024, using=using)
        rates[TITLES[using]] = [
            (count, rush(count, work, work, bench.scaled(3, 1) / 2).rate)
            for count in PROCESSES[: bench.scaled(len(PROCESSES), 4)]
        ]
    yield Curve(
        "reservations-by-processes",
        "Reservations of one collection, by processes",
        "processes",
        "reservations/s",
        rates,
    )
