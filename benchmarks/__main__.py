"""Measure, and write docs/benchmarks.

python -m benchmarks [--quick] [--list] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.databases import configure, made

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "benchmarks"
MEASUREMENTS = (
    "ids",
    "reservations",
    "saves",
    "threads",
    "graph",
    "contention",
    "waits",
    "startup",
    "memory",
    "sizes",
    "far",
    "growth",
)


def main() -> int:
    """Measure what is named, or all; return 1 where a floor is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS)
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, help="JSON only, to this file")
    options = parser.parse_args()
    unknown = set(options.names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no measurement {', '.join(sorted(unknown))}")
    configure()
    from benchmarks import machine, terminal
    from benchmarks.bench import Bench
    from benchmarks.results import Report, Result, failures

    with made() as aliases:
        bench = Bench(aliases, options.quick, options.seed)
        facts = machine.described(aliases, options.quick)
        findings = list(measured(options.names or MEASUREMENTS, bench))
    report = Report(facts, findings)
    if options.to:
        report.save(options.to)
    elif not options.names:
        publish(report)
    terminal.show(report)
    return 1 if failures(report.of(Result)) else 0


def measured(names: tuple[str, ...], bench: object) -> Iterator[object]:
    """Yield what each measurement finds; tell how long it took."""
    for name in names:
        start = time.monotonic()
        print(f"{name} ", end="", flush=True)
        yield from import_module(f"benchmarks.{name}").measure(bench)
        print(f"{time.monotonic() - start:.0f} s", flush=True)


def publish(report: object) -> None:
    """Write JSON, Markdown and plots."""
    from benchmarks import markdown, plots

    FOLDER.mkdir(exist_ok=True)
    report.save(FOLDER / "results.json")
    plots.draw(report, FOLDER)
    markdown.write(report, DOCS / "benchmarks.md")


if __name__ == "__main__":
    sys.exit(main())
