"""What a caller waits for an id when a range ends, with and without prefetch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

from django.test import override_settings

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES, empty
from benchmarks.results import Finding, Skipped, compared
from benchmarks.rounds import Figures, interleaved, percentile
from benchmarks.shop.models import AutoOrder, SmallOrder
from django_hilo.generator import iter_ids

SHARE = 0.999
AT = 0.5
WITH, WITHOUT = "with prefetch", "without"


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on the database that projects run on."""
    if bench.server == SQLITE:
        yield Skipped("waits at a refill: set HILO_TEST_POSTGRES.")
        return
    yield from refills(bench, bench.server, TITLES[bench.server])


def refills(bench: Bench, using: str, where: str) -> Iterator[Finding]:
    """Compare the 999th of a thousand waits, sorted, and the median of saves."""
    count = bench.scaled(4000, 1000)
    waits: Figures = {WITH: [], WITHOUT: []}
    turns = {
        WITH: partial(_turn, using, AT, count, waits[WITH]),
        WITHOUT: partial(_turn, using, None, count, waits[WITHOUT]),
    }
    saves = interleaved(turns, bench.scaled(9, 3), bench.seconds(40), bench.seed)
    empty(using, AutoOrder)
    # The first turns are not counted.
    longest = {name: given[1:] for name, given in waits.items()}
    for key, figures in (("waits", longest), ("saves_prefetch", saves)):
        yield from compared(figures, {key: (WITH, WITHOUT)}, where, "us")


def _turn(
    using: str, prefetch_at: float | None, count: int, waits: list[float]
) -> float:
    """Save rows; note the longest waits for an id, return what a save takes."""
    waited, took = [], []
    rows = AutoOrder.objects.using(using)
    with override_settings(HILO={"PREFETCH_AT": prefetch_at}):
        ids = iter_ids(SmallOrder, using=using)
        for _ in range(count):
            start = time.perf_counter()
            id = next(ids)
            waited.append(time.perf_counter() - start)
            rows.create(name=id)
            took.append(time.perf_counter() - start)
    waits.append(percentile(waited, SHARE))
    return statistics.median(took)
