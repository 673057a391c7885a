"""What a caller waits for an id when a range ends, with and without prefetch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from django.test import override_settings

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES, empty
from benchmarks.results import Finding, Result, Skipped
from benchmarks.rounds import interleaved, percentile, ratio, spreads
from benchmarks.shop.models import AutoOrder, SmallOrder
from django_hilo.generator import iter_ids

SHARE = 0.999
AT = 0.5


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare the 999th of a thousand waits, sorted."""
    if bench.server == SQLITE:
        yield Skipped("waits at a refill: set HILO_TEST_POSTGRES.")
        return
    ids = bench.scaled(4000, 1000)
    turns = {
        "with prefetch": partial(_turn, bench.server, AT, ids),
        "without": partial(_turn, bench.server, None, ids),
    }
    figures = interleaved(turns, bench.scaled(9, 3), bench.seconds(60), bench.seed)
    empty(bench.server, AutoOrder)
    candidates = spreads(
        {name: [value * 1e6 for value in given] for name, given in figures.items()}
    )
    yield Result(
        "waits", TITLES[bench.server], ratio(figures, "with prefetch", "without"),
        candidates, "us",
    )  # fmt: skip


def _turn(using: str, prefetch_at: float | None, count: int) -> float:
    waits = []
    rows = AutoOrder.objects.using(using)
    with override_settings(HILO={"PREFETCH_AT": prefetch_at}):
        ids = iter_ids(SmallOrder, using=using)
        for _ in range(count):
            start = time.perf_counter()
            id = next(ids)
            waits.append(time.perf_counter() - start)
            rows.create(name=id)
    return percentile(waits, SHARE)
