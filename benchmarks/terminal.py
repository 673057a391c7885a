"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.markdown import figure, number
from benchmarks.questions import Goal
from benchmarks.results import Report, Result, Skipped
from benchmarks.rounds import Spread


def show(report: Report) -> None:
    """Print a line a goal, and what was left out."""
    print()
    show_lines(report.results)
    for left in report.of(Skipped):
        print(f"Not measured: {left.sentence}")


def show_lines(results: Iterable[Result]) -> None:
    """Print a line a goal."""
    lines = [line(found) for found in results]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())


def line(found: Result) -> tuple[str, ...]:
    """Return the cells of a goal."""
    goal = found.goal
    median = number(found.figure.median, goal.unit)
    reached = "met" if found.is_met else "MISSED"
    figures = f"[{spread(found.figure)} ({found.figure.rounds})]"
    return (found.key, found.where, median, figures, wanted(goal, found.where), reached)


def spread(of: Spread) -> str:
    return f"{figure(of.least)} to {figure(of.most)}"


def wanted(goal: Goal, where: str) -> str:
    """Return the bar of a place, with its side."""
    return f"{'≤' if goal.at_most else '≥'} {number(goal.bar(where), goal.unit)}"
