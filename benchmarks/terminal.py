"""The table at the end of a run."""

from __future__ import annotations

from benchmarks.markdown import number, spread, verdict, wanted
from benchmarks.results import Report, Result, Skipped


def show(report: Report) -> None:
    """Print a line a goal, and what was left out."""
    lines = [line(found) for found in report.results]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print()
    for cells in lines:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())
    for left in report.of(Skipped):
        print(f"Not measured: {left.sentence}")


def line(found: Result) -> tuple[str, ...]:
    """Return the cells of a goal."""
    bar = found.goal
    median = number(found.figure.median, bar.unit)
    floor = f"floor {wanted(bar, bar.floor)}"
    reached = verdict(bar, found.figure.median).strip("*")
    return (found.key, found.where, median, f"[{spread(found.figure)}]", floor, reached)
