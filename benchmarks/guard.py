"""What CI refuses: counts and sizes over their floors, times far over them.

    python -m benchmarks.guard

Counts and sizes must reach their floors. Ratios of times must reach 60 % of theirs, in
one of three tries. A start has no ratio but milliseconds, which tell of the machine:
tests/project/test_startup.py counts what it reads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

from benchmarks.bench import Bench
from benchmarks.databases import POSTGRES, TITLES, configure, made, missing
from benchmarks.markdown import number, wanted
from benchmarks.results import Finding, Result, Skipped

TRIES = 3


def main() -> int:
    """Measure, print, and return 1 where something is refused."""
    configure()
    for sentence in missing():
        print(f"Not measured: {sentence}")
    began, refused = time.monotonic(), 0
    with made() as aliases:
        bench = Bench(aliases, is_quick=True)
        for measure in measurements(bench):
            refused += guarded(measure)
    print(f"{refused} refused, {time.monotonic() - began:.0f} s")
    return 1 if refused else 0


def measurements(bench: Bench) -> Iterable[Callable[[], Iterable[Finding]]]:
    """Yield what is measured; sizes first, since their numbers start at 1."""
    from benchmarks import (
        graph,
        ids,
        memory,
        reservations,
        saves,
        sizes,
        threads,
        waits,
    )

    if bench.has(POSTGRES):
        yield partial(sizes.indexes, POSTGRES, sizes.GUARDED)
    yield partial(reservations.counts, bench)
    for alias in bench.aliases:
        yield lambda alias=alias: [saves.statements(alias)]
    yield partial(ids.quickly, bench)
    yield partial(threads.measure, bench)
    yield partial(memory.measure, bench)
    yield partial(graph.measure, bench)
    yield partial(waits.measure, bench)
    for alias in bench.aliases:
        title = TITLES[alias]
        yield partial(reservations.durations, bench, alias, title)
        yield partial(saves.quickly, bench, alias, f"{title}, atomic()")


def guarded(measure: Callable[[], Iterable[Finding]]) -> int:
    """Measure up to three times; print the last figures, return how many are low."""
    for left in reversed(range(TRIES)):
        findings = list(measure())
        results = [found for found in findings if isinstance(found, Result)]
        low = [found for found in results if not found.guards]
        # What is exact does not change.
        if all(found.goal.exact for found in low) or not left:
            break
    for found in results:
        print(line(found), flush=True)
    for left_out in findings:
        if isinstance(left_out, Skipped):
            print(f"Not measured: {left_out.sentence}")
    return len(low)


def line(found: Result) -> str:
    """Return what a figure is held against."""
    bar = found.goal
    said = "ok     " if found.guards else "REFUSED"
    figure = number(found.figure.median, bar.unit)
    return f"{said} {found.key:24} {found.where:26} {figure} ({wanted(bar, bar.bar)})"


if __name__ == "__main__":
    sys.exit(main())
