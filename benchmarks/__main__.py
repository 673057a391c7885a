"""Measure, and write docs/explanation/benchmarks.md.

python -m benchmarks [--quick] [--seed N] [--to FILE] [--again] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks import costs, machine, markdown, terminal
from benchmarks.bench import Bench
from benchmarks.databases import TITLES, configure, made, missing
from benchmarks.results import Finding, Report, Result, Skipped, failures

PROJECT = Path(__file__).resolve().parent.parent
README = PROJECT / "README.md"
DOCS = PROJECT / "docs/explanation"
FOLDER = DOCS / "benchmarks"
# First those whose numbers start at 1, so that ids are the same in each run.
MEASUREMENTS = (
    "workers",
    "sizes",
    "saves",
    "graph",
    "suites",
    "loads",
    "contention",
    "growth",
    "far",
    "large",
    "startup",
    "memory",
    "reservations",
    "calls",
    "ids",
)
# Only where they are named: the page has none of their figures.
BY_NAME = ("many", "fleet")


def main() -> int:
    """Measure what is named, or all; return 1 where a count misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS + BY_NAME)
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
    unknown = set(options.names) - set(MEASUREMENTS + BY_NAME)
    if unknown:
        parser.error(f"no measurement {', '.join(sorted(unknown))}")
    configure()
    findings: list[Finding] = [Skipped(sentence) for sentence in missing()]
    chosen = set(options.names or MEASUREMENTS)
    names = [name for name in MEASUREMENTS + BY_NAME if name in chosen]
    began = time.monotonic()
    is_whole = chosen == set(MEASUREMENTS) and not options.quick
    is_published = is_whole and not options.to
    folder = FOLDER if is_published else None
    with made() as aliases:
        bench = Bench(aliases, options.quick, options.seed, folder)
        facts = machine.described(aliases, options.quick)
        findings += measured(names, bench)
    facts["minutes"] = round((time.monotonic() - began) / 60)
    report = Report(facts, findings)
    if options.to:
        report.save(options.to)
    if is_published:
        publish(report)
    terminal.show(report)
    return 1 if failures(report.of(Result)) else 0


def measured(names: list[str], bench: Bench) -> Iterator[Finding]:
    """Yield what each measurement finds; print the seconds it took, by database."""
    for name in names:
        start = last = time.monotonic()
        places: Counter[str] = Counter()
        for found in import_module(f"benchmarks.{name}").measure(bench):
            yield found
            now = time.monotonic()
            places[place(found)] += now - last
            last = now
        each = ", ".join(f"{where} {took:.0f}" for where, took in places.items())
        print(f"{name:12} {last - start:5.0f} s ({each})", flush=True)


def place(found: Finding) -> str:
    """Return the database that a finding is of."""
    known = found.where if isinstance(found, Result) else getattr(found, "title", "")
    return next((title for title in TITLES.values() if title in known), "other")


def publish(report: Report) -> None:
    """Write JSON, Markdown and plots."""
    from benchmarks import plots

    report.save(FOLDER / "results.json")
    plots.draw(report, FOLDER)
    markdown.write(markdown.rendered(report), DOCS / "benchmarks.md")
    markdown.write(costs.rendered(report), README)


if __name__ == "__main__":
    sys.exit(main())
