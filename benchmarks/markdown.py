"""A report as a page of Markdown: a table and a plot for each question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.databases import TITLES
from benchmarks.goals import QUESTIONS, Goal, Question
from benchmarks.results import Curve, Peers, Report, Result, Skipped
from benchmarks.rounds import Spread

# The first part of where a figure was measured, and the column that it stands in.
PLACES = ("memory", *TITLES.values())
START, END = "<!-- made by python -m benchmarks -->", "<!-- end -->"


def write(report: Report, page: Path) -> None:
    """Put the tables of a report between the markers of a page."""
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{rendered(report)}\n{END}{after}")


def rendered(report: Report) -> str:
    """Return all of a report."""
    drawn = {each.picture for each in report.of(Peers) if each.picture}
    drawn |= {each.name for each in report.of(Curve)}
    parts = [
        *(answered(question, report, drawn) for question in QUESTIONS),
        skipped(report.of(Skipped)),
        machine(report.machine),
    ]
    return "\n".join(line for part in parts for line in part)


def answered(question: Question, report: Report, drawn: set[str]) -> Iterator[str]:
    """Yield a question, its table and its plot."""
    results = [found for found in report.results if found.goal in question.goals]
    if not results:
        return
    yield from (f"## {question.title}", "", question.answer, "")
    places = [
        place for place in PLACES if any(place == at(each)[0] for each in results)
    ]
    yield row(("", "beside", "goal", *places))
    yield f"|{'---|' * (3 + len(places))}"
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for found in results:
        goal = found.goal
        place, *rest = at(found)
        name = (
            ", ".join([goal.what, *rest]),
            goal.beside or "-",
            bars(goal),
        )
        rows.setdefault(name, {})[place] = cell(found)
    for name, cells in rows.items():
        yield row((*name, *(cells.get(place, "") for place in places)))
    yield ""
    if question.picture in drawn:
        yield from (f"![{question.title}](benchmarks/{question.picture}.svg)", "")


def at(found: Result) -> list[str]:
    """Return the place of a result, and what else its row names, if anything."""
    return found.where.split(", ", 1)


def cell(found: Result) -> str:
    """Return a median with its spread; its unit is that of the goal."""
    median = figure(found.figure.median) + "x" * (found.goal.unit == "x")
    median = f"**{median}**" if found.is_met else median
    is_counted = found.figure.rounds == 1
    return median if is_counted else f"{median} ({spread(found.figure)})"


def skipped(sentences: Iterable[Skipped]) -> Iterator[str]:
    """Yield what was left out."""
    lines = [f"- {each.sentence}" for each in sentences]
    if lines:
        yield from ("## Not measured", "", *lines, "")


def machine(facts: dict[str, Any]) -> Iterator[str]:
    """Yield what the figures were made on."""
    packages = ", ".join(f"{name} {v}" for name, v in facts["packages"].items())
    yield from ("## The machine", "")
    yield f"{facts['when']}, {'a quick run' if facts['quick'] else 'a whole run'}:"
    yield (
        f"{facts['cores']} cores ({facts['processor']}), {facts['system']}, "
        f"load before the run {facts['load before']}, Python {facts['Python']}, "
        f"{packages}."
    )
    yield from (
        "",
        "| database | version | what a commit waits for "
        "| `SELECT 1`, us | `INSERT` and commit, us |",
        "|---|---|---|---|---|",
    )
    for alias, known in facts["databases"].items():
        yield row(
            (
                TITLES[alias],
                known["version"],
                known["durability"],
                figure(known["SELECT 1, us"]),
                figure(known["INSERT and commit, us"]),
            )
        )
    yield ""


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def spread(of: Spread) -> str:
    return f"{figure(of.least)} to {figure(of.most)}"


def wanted(goal: Goal, where: str) -> str:
    """Return the bar of a place, with its side."""
    return f"{'≤' if goal.at_most else '≥'} {number(goal.bar(where), goal.unit)}"


def bars(goal: Goal) -> str:
    """Return a goal, and the places where it is another one."""
    others = [
        f"{place} {number(bar, goal.unit)}"
        for place, bar in goal.on.items()
        if bar != goal.goal
    ]
    return ", ".join([wanted(goal, ""), *others])


def number(value: float, unit: str) -> str:
    """Return a figure with its unit."""
    if unit == "x":
        return f"{figure(value)}x"
    return f"{figure(value)} {unit.removesuffix('s') if value == 1 else unit}"


def figure(value: float) -> str:
    """Return a number with three digits that count."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"
