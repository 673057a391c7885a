"""Threads that draw from one collection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

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
    start = Barrier(threads)
    with ThreadPoolExecutor(threads) as executor:
        rates = executor.map(partial(_rate, using, start), range(threads))
        return sum(rates)


def _rate(using: str, start: Barrier, thread: int) -> float:
    ids = iter_ids(Order, using=using)
    next(ids)
    connections[using].ensure_connection()
    start.wait()
    began = now = time.perf_counter()
    taken = 0
    while now < began + SECONDS:
        for _ in range(AT_ONCE):
            next(ids)
        taken += AT_ONCE
        now = time.perf_counter()
    connections.close_all()
    return taken / (now - began)
