"""How cost grows with processes, with collections, and with the size of ranges."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES
from benchmarks.memory import in_process, ranges_of
from benchmarks.processes import rush
from benchmarks.results import Curve, Finding, Skipped
from benchmarks.rounds import percentile
from django_hilo.counters import reserve
from django_hilo.generator import iter_ids

PROCESSES = (1, 2, 4, 8, 16, 32, 64)
COLLECTIONS = (1, 10, 100, 1000)
SIZES = tuple(4**power for power in range(11))
AT_ONCE = 100


def measure(bench: Bench) -> Iterator[Finding]:
    """Draw a curve of each."""
    yield from processes(bench)
    yield collections(bench)
    yield sizes(bench)


def processes(bench: Bench) -> Iterator[Finding]:
    """Let more and more processes reserve ranges of one collection."""
    servers = [alias for alias in bench.aliases if alias != SQLITE]
    if not servers:
        yield Skipped("processes that reserve at once: set HILO_TEST_POSTGRES.")
        return
    rates: dict[str, list[tuple[float, float]]] = {}
    waits: dict[str, list[tuple[float, float]]] = {}
    for using in servers:
        name = TITLES[using]
        for count in PROCESSES[: bench.scaled(len(PROCESSES), 4)]:
            work = partial(reserve, "contended", 1024, using=using)
            done = rush(count, work, work, 0.5 if bench.is_quick else 1.5)
            rates.setdefault(name, []).append((count, done.rate))
            for title, wait in (
                ("median", statistics.median(done.waits)),
                ("p99", percentile(done.waits, 0.99)),
            ):
                points = waits.setdefault(f"{name}, {title}", [])
                points.append((count, wait * 1e3))
    yield Curve(
        "reservations-by-processes",
        "Reservations of one collection, by processes",
        "processes",
        "reservations/s",
        rates,
    )
    yield Curve(
        "waiting-by-processes",
        "What a reservation of one collection takes, by processes",
        "processes",
        "ms",
        waits,
    )


def collections(bench: Bench) -> Curve:
    """Hold ranges of more and more collections in one process."""
    points = COLLECTIONS[: bench.scaled(len(COLLECTIONS), 3)]
    memory = in_process(bench.server, points)
    return Curve(
        "memory-by-collections",
        "Memory of a collection and its range, by collections",
        "collections",
        "bytes a collection",
        {"memory": list(zip(points, memory, strict=True))},
    )


def sizes(bench: Bench) -> Curve:
    """Take ids out of ranges of one size."""
    seconds = 0.2 if bench.is_quick else 0.5
    series = {
        TITLES[using]: [(size, _rate(using, size, seconds)) for size in SIZES]
        for using in bench.aliases
    }
    return Curve(
        "ids-by-range",
        "Ids a second, by the size of ranges",
        "numbers in a range",
        "ids/s",
        series,
    )


def _rate(using: str, size: int, seconds: float) -> float:
    with ranges_of(size):
        ids = iter_ids(f"sized{size}", using=using)
        next(ids)
        taken, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(AT_ONCE):
                next(ids)
            taken += AT_ONCE
        return taken / passed
