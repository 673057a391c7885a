"""A report as a page of Markdown: tables and a plot for each question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.databases import TITLES
from benchmarks.goals import QUESTIONS
from benchmarks.questions import Question
from benchmarks.results import Curve, Peers, Report, Result, Seen, Skipped

PLACES = list(TITLES.values())
# What differs less is the same: the next run could have it the other way round.
NOISE = 0.02
START, END = "<!-- made by python -m benchmarks -->", "<!-- end -->"


def write(text: str, page: Path) -> None:
    """Put text between the markers of a page."""
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{text}\n{END}{after}")


def rendered(report: Report) -> str:
    """Return all of a report."""
    drawn = {each.name for each in report.of(Peers)}
    drawn |= {each.name for each in report.of(Curve)}
    parts = [
        *(answered(question, report, drawn) for question in QUESTIONS),
        skipped(report.of(Skipped)),
        machine(report.machine),
    ]
    return "\n".join(line for part in parts for line in part)


def answered(question: Question, report: Report, drawn: set[str]) -> Iterator[str]:
    """Yield a question, its tables and its plot, if anything was measured."""
    peers = [each for each in report.of(Peers) if each.name == question.peers]
    shown = [goal for goal in question.goals if goal.is_shown]
    results = [found for found in report.results if found.goal in shown]
    seen = [each for each in report.of(Seen) if each.name == question.seen]
    if not peers and not results and not seen:
        return
    yield from (f"## {question.title}", "", question.answer, "")
    if peers:
        yield from (*side_by_side(peers), "")
    if results:
        yield from (*compared(results), "")
    for each in seen:
        yield from (*in_turn(each), "")
    if question.picture in drawn:
        yield from (f"![{question.title}](benchmarks/{question.picture}.svg)", "")


def side_by_side(peers: list[Peers]) -> Iterator[str]:
    """Yield a table with a row a candidate, from the least of the first column."""
    yield from head("", *(each.title for each in peers))
    first = peers[0].candidates
    for name in sorted(first, key=lambda name: first[name].median):
        yield row((name, *(figure(each.candidates[name].median) for each in peers)))


def in_turn(seen: Seen) -> Iterator[str]:
    """Yield a table with the ids of each kind of key."""
    yield from head("", seen.title)
    for name, ids in seen.ids.items():
        yield row((f"`{name}`", ", ".join(dict.fromkeys(map(as_code, ids)))))


def as_code(id: str) -> str:
    """Return an id as code; a description stays text."""
    return id if " " in id else f"`{id}`"


def compared(results: list[Result]) -> Iterator[str]:
    """Yield a table with a column a database, or with the parts of the only one."""
    is_single = len({at(found)[0] for found in results}) == 1
    besides = {found.goal.beside for found in results}
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for found in results:
        place, *rest = at(found)
        column = ", ".join(rest) or place if is_single else place
        name = found.goal.what if is_single else label_of(found)
        label = (name, found.goal.beside) if len(besides) > 1 else (name,)
        rows.setdefault(label, {})[column] = cell(found)
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    if not is_single:
        columns.sort(key=PLACES.index)
    beside = ("", "beside") if len(besides) > 1 else (f"beside {besides.pop()}",)
    yield from head(*beside, *columns)
    for label, cells in rows.items():
        yield row((*label, *(cells.get(column, "") for column in columns)))


def at(found: Result) -> list[str]:
    """Return the place of a result, and what else its row names, if anything."""
    return found.where.split(", ", 1)


def place_of(found: Result) -> str:
    """Return the database of a result."""
    return at(found)[0]


def label_of(found: Result) -> str:
    """Return the first cell of a result's row, in a table with several databases."""
    return ", ".join([found.goal.what, *at(found)[1:]])


def cell(found: Result) -> str:
    """Return a ratio of time in words, or a figure with its unit."""
    goal, median = found.goal, found.figure.median
    return in_words(speed(found)) if goal.unit == "x" else number(median, goal.unit)


def speed(found: Result) -> float:
    """Return how many times as fast ours is."""
    median = found.figure.median
    return 1 / median if found.goal.at_most else median


def in_words(speed: float) -> str:
    """Say how much faster or slower something is."""
    times = max(speed, 1 / speed)
    if times < 1 + NOISE:
        return "same"
    much = f"{figure(times)}x" if times >= 2 else f"{round(times * 100) - 100}%"
    return f"{much} {'faster' if speed > 1 else 'slower'}"


def skipped(sentences: Iterable[Skipped]) -> Iterator[str]:
    """Yield what was left out."""
    lines = [f"- {each.sentence}" for each in sentences]
    if lines:
        yield from ("## Not measured", "", *lines, "")


def machine(facts: dict[str, Any]) -> Iterator[str]:
    """Yield what the figures were made on."""
    versions = {
        TITLES[alias]: known["version"] for alias, known in facts["databases"].items()
    }
    django = facts["packages"]["Django"]
    known = {"Python": facts["Python"], "Django": django, **versions}
    yield from ("## The machine", "")
    how = "a quick run" if facts["quick"] else f"in {facts['minutes']} minutes"
    yield f"{facts['when']}, {how}:"
    yield (
        f"{facts['cores']} cores ({facts['processor']}), {facts['system']}, "
        f"load before the run {facts['load before']}, "
        f"{', '.join(' '.join(pair) for pair in known.items())}. "
        "[results.json](benchmarks/results.json) also has the versions of packages and "
        "the times of a query and a commit."
    )
    yield ""


def head(*cells: str) -> Iterator[str]:
    yield row(cells)
    yield f"|{'---|' * len(cells)}"


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
