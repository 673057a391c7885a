"""Measure, and write docs/explanation/benchmarks.md.

python -m benchmarks [--quick] [--seed N] [--to FILE] [--again] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks import machine, markdown, terminal
from benchmarks.bench import Bench
from benchmarks.databases import configure, made, missing
from benchmarks.results import Finding, Report, Result, Skipped, failures

DOCS = Path(__file__).resolve().parent.parent / "docs/explanation"
FOLDER = DOCS / "benchmarks"
# Sizes first: their numbers start at 1, so that ids are as long in each run.
MEASUREMENTS = (
    "sizes",
    "ids",
    "reservations",
    "saves",
    "calls",
    "graph",
    "processor",
    "loads",
    "suites",
    "contention",
    "startup",
    "memory",
    "many",
    "far",
    "growth",
    "large",
    "fleet",
)


def main() -> int:
    """Measure what is named, or all; return 1 where a count misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS)
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, help="JSON only, to this file")
    parser.add_argument(
        "--again", action="store_true", help="tables and plots of the last run"
    )
    options = parser.parse_args()
    if options.again:
        publish(Report.load(FOLDER / "results.json"))
        return 0
    unknown = set(options.names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no measurement {', '.join(sorted(unknown))}")
    configure()
    findings: list[Finding] = [Skipped(sentence) for sentence in missing()]
    chosen = set(options.names or MEASUREMENTS)
    names = [name for name in MEASUREMENTS if name in chosen]
    is_whole = chosen == set(MEASUREMENTS) and not options.quick
    is_published = is_whole and not options.to
    folder = FOLDER if is_published else None
    with made() as aliases:
        bench = Bench(aliases, options.quick, options.seed, folder)
        facts = machine.described(aliases, options.quick)
        findings += measured(names, bench)
    report = Report(facts, findings)
    if options.to:
        report.save(options.to)
    if is_published:
        publish(report)
    terminal.show(report)
    return 1 if failures(report.of(Result)) else 0


def measured(names: list[str], bench: Bench) -> Iterator[Finding]:
    """Yield what each measurement finds; tell how long it took."""
    for name in names:
        start = time.monotonic()
        print(f"{name} ", end="", flush=True)
        yield from import_module(f"benchmarks.{name}").measure(bench)
        print(f"{time.monotonic() - start:.0f} s", flush=True)


def publish(report: Report) -> None:
    """Write JSON, Markdown and plots."""
    from benchmarks import plots

    report.save(FOLDER / "results.json")
    plots.draw(report, FOLDER)
    markdown.write(report, DOCS / "benchmarks.md")


if __name__ == "__main__":
    sys.exit(main())
