"""A report as tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.databases import TITLES
from benchmarks.goals import Goal
from benchmarks.results import Curve, Peers, Report, Result, Skipped
from benchmarks.rounds import Spread

START, END = "<!-- made by python -m benchmarks -->", "<!-- end -->"


def write(report: Report, page: Path) -> None:
    """Put the tables of a report between the markers of a page."""
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{rendered(report)}\n{END}{after}")


def rendered(report: Report) -> str:
    """Return all of a report."""
    return "\n".join(
        line
        for part in (
            machine(report.machine),
            goals(report.results),
            peers(report.of(Peers)),
            curves(report.of(Curve)),
            skipped(report.of(Skipped)),
        )
        for line in part
    )


def goals(results: Iterable[Result]) -> Iterator[str]:
    """Yield the table of goals."""
    yield from (
        "### Goals",
        "",
        "| what | against | where | median | least to most | goal | floor | reached |",
        "|---|---|---|---|---|---|---|---|",
    )
    for found in results:
        bar, unit = found.goal, found.goal.unit
        cells = (
            bar.what,
            bar.against or "-",
            found.where,
            f"**{number(found.figure.median, unit)}**",
            spread(found.figure),
            wanted(bar, bar.goal),
            wanted(bar, bar.floor),
            verdict(bar, found.figure.median),
        )
        yield row(cells)
    yield ""


def verdict(bar: Goal, figure: float) -> str:
    """Return how far a figure came."""
    if bar.is_met(figure):
        return "goal"
    return "floor" if bar.holds(figure) else "**neither**"


def peers(compared: Iterable[Peers]) -> Iterator[str]:
    """Yield a table for each comparison, the fastest first."""
    for each in compared:
        yield from (f"### {each.title}", "")
        if each.picture:
            yield from (f"![{each.title}](benchmarks/{each.picture}.svg)", "")
        yield f"| | {each.unit} | least to most |"
        yield "|---|---|---|"
        ordered = sorted(each.candidates.items(), key=lambda item: item[1].median)
        for name, given in ordered:
            yield row((f"`{name}`", figure(given.median), spread(given)))
        yield ""


def curves(drawn: Iterable[Curve]) -> Iterator[str]:
    """Yield a picture for each curve, with its points."""
    for each in drawn:
        yield from (
            f"### {each.title}",
            "",
            f"![{each.title}](benchmarks/{each.name}.svg)",
        )
        yield ""
        xs = sorted({x for points in each.series.values() for x, _ in points})
        yield row((each.x, *(figure(x) for x in xs)))
        yield "|---" * (len(xs) + 1) + "|"
        for name, points in each.series.items():
            known = dict(points)
            cells = (figure(known[x]) if x in known else "-" for x in xs)
            yield row((f"{name} ({each.y})", *cells))
        yield ""


def skipped(sentences: Iterable[Skipped]) -> Iterator[str]:
    """Yield what was left out."""
    lines = [f"- {each.sentence}" for each in sentences]
    if lines:
        yield from ("### Not measured", "", *lines, "")


def machine(facts: dict[str, Any]) -> Iterator[str]:
    """Yield what the figures were made on."""
    packages = ", ".join(f"{name} {v}" for name, v in facts["packages"].items())
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
    if of.rounds == 1:
        return "one figure"
    return f"{figure(of.least)} to {figure(of.most)}, {of.rounds} rounds"


def wanted(bar: Goal, value: float) -> str:
    """Return a bar with its side."""
    return f"{'≤' if bar.at_most else '≥'} {number(value, bar.unit)}"


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
