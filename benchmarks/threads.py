"""Threads that draw from one collection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.db import connections

from benchmarks.bench import Bench
from benchmarks.databases import TITLES
from benchmarks.results import Finding, Result
from benchmarks.rounds import interleaved, ratio, spreads
from benchmarks.shop.models import Order
from django_hilo.generator import iter_ids

THREADS = 8
SECONDS = 0.4
# Between looks at the clock.
AT_ONCE = 1000


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare the ids that 8 threads get in a second with those of one."""
    using = bench.server
    turns = {
        "1 thread": partial(_turn, 1, using),
        f"{THREADS} threads": partial(_turn, THREADS, using),
    }
    figures = interleaved(turns, bench.scaled(15, 7), seed=bench.seed)
    yield Result(
        "threads", TITLES[using], ratio(figures, f"{THREADS} threads", "1 thread"),
        spreads(figures), "ids/s",
    )  # fmt: skip


def _turn(threads: int, using: str) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as executor:
        taken = executor.map(
            partial(_take, using, start + SECONDS), [AT_ONCE] * threads
        )
        return sum(taken) / (time.perf_counter() - start)


def _take(using: str, until: float, at_once: int) -> int:
    ids = iter_ids(Order, using=using)
    taken = 0
    while time.perf_counter() < until:
        for _ in range(at_once):
            next(ids)
        taken += at_once
    connections.close_all()
    return taken
