"""The memory of a held range, and of collections."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterable, Iterator

from django.test import override_settings

from benchmarks.bench import Bench
from benchmarks.child import run
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread
from django_hilo.generator import next_id

COLLECTIONS = 20
LONG = 1_048_576


def measure(bench: Bench) -> Iterator[Finding]:
    """Measure in a process of its own."""
    for held in in_process(bench.server, []):
        yield Result("memory", "memory", Spread.of([held]))


def in_process(using: str, points: Iterable[int]) -> list[float]:
    """Return bytes of a held range, or of a collection at each of the points."""
    done = run("memory", using, *map(str, points))
    return json.loads(done)


def of_a_range(using: str) -> float:
    """Return what a collection holds with a range, beyond what it does without."""
    names = [f"held{number}" for number in range(COLLECTIONS)]
    with ranges_of(1):
        for name in names:
            next_id(name, using)
    with ranges_of(LONG):
        next_id("first-of-all", using)
        before = traced()
        for name in names:
            next_id(name, using)
        return (traced() - before) / COLLECTIONS


def of_collections(using: str, points: list[int]) -> list[float]:
    """Return what a collection with its range holds, where there are so many."""
    next_id("first-of-all", using)
    before, made, found = traced(), 0, []
    for point in points:
        for number in range(made, point):
            next_id(f"collection{number}", using)
        made = point
        found.append((traced() - before) / point)
    return found


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def ranges_of(size: int) -> override_settings:
    """Let each range have this many numbers."""
    return override_settings(HILO={"CAPACITY": size, "MAX_CAPACITY": size})


def child(using: str, *points: str) -> None:
    """Print what `in_process` returns."""
    tracemalloc.start()
    asked = [int(point) for point in points]
    print(json.dumps(of_collections(using, asked) if asked else [of_a_range(using)]))
