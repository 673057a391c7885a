"""The memory of a held range."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

from django.test import override_settings

from benchmarks.bench import Bench
from benchmarks.child import run
from benchmarks.databases import TITLES
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread
from django_hilo.generator import next_id

COLLECTIONS = 20
LONG = 1_048_576


def measure(bench: Bench) -> Iterator[Finding]:
    """Measure in a process of its own."""
    held = float(run("memory", bench.server))
    yield Result("memory", TITLES[bench.server], Spread.of([held]))


def child(using: str) -> None:
    """Print what a collection holds with a range, beyond what it does without."""
    tracemalloc.start()
    names = [f"held{number}" for number in range(COLLECTIONS)]
    with ranges_of(1):
        for name in names:
            next_id(name, using)
    with ranges_of(LONG):
        next_id("first-of-all", using)
        before = traced()
        for name in names:
            next_id(name, using)
        print((traced() - before) / COLLECTIONS)


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def ranges_of(size: int) -> override_settings:
    """Let each range have this many numbers."""
    return override_settings(HILO={"CAPACITY": size, "MAX_CAPACITY": size})
