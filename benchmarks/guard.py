"""Refuse a change that needs more statements, calls, reservations or bytes than agreed.

    python -m benchmarks.guard

Only counts and sizes, which are the same on every machine; times are in `make bench`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from benchmarks.bench import Bench
from benchmarks.databases import POSTGRES, configure, made, missing
from benchmarks.results import Finding, Result, failures
from benchmarks.terminal import show_lines


def main() -> int:
    """Measure, print, and return 1 where something is refused."""
    configure()
    for sentence in missing():
        print(f"Not measured: {sentence}")
    with made() as aliases:
        findings = measured(Bench(aliases, is_quick=True))
        results = [found for found in findings if isinstance(found, Result)]
    show_lines(results)
    return 1 if failures(results) else 0


def measured(bench: Bench) -> Iterable[Finding]:
    """Yield the counts and sizes; sizes first, since their numbers start at 1."""
    # These need the settings.
    from benchmarks import calls, graph, reservations, saves, sizes

    if bench.has(POSTGRES):
        yield from sizes.indexes(POSTGRES, sizes.GUARDED)
    yield from reservations.counts(bench)
    yield from calls.measure(bench)
    for alias in bench.aliases:
        yield saves.statements(alias)
        yield graph.statements(alias)


if __name__ == "__main__":
    sys.exit(main())
