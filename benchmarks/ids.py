"""Ids out of memory, one thread: beside uuid4, uuid7, ULID, snowflake-id."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyperf

from benchmarks.bench import Bench
from benchmarks.child import run
from benchmarks.results import Finding, Peers, Result, compared
from benchmarks.rounds import Figures, spreads
from benchmarks.statements import IDS, SETTING, STATEMENTS

UUID4 = "str(uuid.uuid4())"
PAIRS = {
    "iter_ids": (UUID4, "next(iter_ids(Order))"),
    "next_id": (UUID4, "next_id(Order)"),
    "next_number": (UUID4, "next_number(Order)"),
    "anext_id": (UUID4, "await anext_id(Order)"),
    "manager_next_id": (UUID4, "Order.objects.next_id()"),
    "next_ids": (UUID4, "next_ids(Order, 100_000)"),
    "construction": ("Order()", "AutoOrder()"),
}
# Of one process each, with rounds in it.
PROCESSES = 5
ROUNDS = 7


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare ids in memory."""
    keep = bench.folder and bench.folder / "pyperf.json"
    processes = bench.scaled(PROCESSES, 2)
    figures = by_processes(processes, bench.seed, list(STATEMENTS), keep)
    yield from found(figures)
    candidates = spreads({f"`{name}`": figures[name] for name in IDS}, 1e9)
    yield Peers("ns of CPU time", "ns", candidates, "ids")


def found(figures: Figures) -> Iterator[Result]:
    """Yield the ratio of each pair, and what a setting takes."""
    yield from compared(figures, PAIRS, "memory", "ns")
    setting = spreads(figures, 1e9)[SETTING]
    yield Result("setting", "memory", setting)


def by_processes(
    processes: int, seed: int, names: list[str], keep: Path | None = None
) -> Figures:
    """Measure the statements in some processes, one after the other."""
    runs: dict[str, list[pyperf.Run]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(processes):
            path = Path(folder) / f"{number}.json"
            run("nanoseconds", f"{seed + number}", f"{ROUNDS}", str(path), *names)
            for each in pyperf.BenchmarkSuite.load(str(path)):
                runs[each.get_name()] += each.get_runs()
    suite = pyperf.BenchmarkSuite([pyperf.Benchmark(runs[name]) for name in names])
    if keep is not None:
        suite.dump(str(keep), replace=True)
    return {each.get_name(): list(each.get_values()) for each in suite}
