"""The table of costs in README, from the same results as the page."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.databases import POSTGRES, TITLES
from benchmarks.goals import CREATE, GRAPH, INTEGER, REQUEST, RIVALS, ROWS, TEXT
from benchmarks.markdown import as_code, figure, head, in_words, row
from benchmarks.results import Peers, Report, Result, Seen

TASKS = (CREATE, REQUEST, GRAPH, ROWS)
COLUMNS = tuple(RIVALS.values())
ANSWER = (
    "Each cell runs from CPU time on PostgreSQL, with numbers in memory, to the worst "
    "of the [benchmarks](docs/explanation/benchmarks.md): on any database, in whole "
    "time, far away, or beside keys that the program doesn't know. A request inserts "
    "an order with five lines, a graph 2,000 of them; bulk rows go by COPY (a "
    "`BigAutoField` takes keys by `nextval()`). Indexes: a million lines and their "
    "orders, inserted by one process, and by eight. The page also has integer keys, "
    "tests and `LOAD DATA`."
)


def rendered(report: Report) -> str:
    """Return the sentence and the table."""
    lines = [*head("", *COLUMNS)]
    for task in TASKS:
        cells = [cell(report.results, f"{task}, {TEXT}", name) for name in COLUMNS]
        lines.append(row((f"{task}, {TEXT}", *cells)))
    return "\n".join([ANSWER, "", *lines, *indexes(report), *first_ids(report), ""])


def cell(results: list[Result], task: str, rival: str) -> str:
    """Return the figure of PostgreSQL to the worst of a task beside a key."""
    of_task = [found for found in results if is_of(found, task, rival)]
    first = [
        found
        for found in of_task
        if found.where == TITLES[POSTGRES] and found.goal.what == task
    ]
    if not first:
        return "not measured"
    shown = in_words(speed(first[0]))
    worst = in_words(min(speed(found) for found in of_task))
    much, _, way = shown.partition(" ")
    most, _, same_way = worst.partition(" ")
    if shown == worst:
        return shown
    if way == same_way:
        return f"{much} to {most} {way}"
    return f"{shown} to {worst}"


def is_of(found: Result, task: str, rival: str) -> bool:
    """Whether a result compares a task, done in whatever way, with a key."""
    goal = found.goal
    return f"{goal.what},".startswith(f"{task},") and f"{goal.beside},".startswith(
        f"{rival},"
    )


def speed(found: Result) -> float:
    median = found.figure.median
    return 1 / median if found.goal.at_most else median


def indexes(report: Report) -> Iterator[str]:
    """Yield a line with the megabytes of the indexes."""
    peers = [each for each in report.of(Peers) if each.name == "indexes"]
    if not peers:
        return

    def size(key: str) -> str:
        one, eight = (
            figure(spread.median)
            for each in peers
            for name, spread in each.candidates.items()
            if key in name.split(", ") or key == name
        )
        return f"{one} and {eight} MB"

    yield row((f"indexes, {TEXT}: {size(TEXT)}", *map(size, COLUMNS)))


def first_ids(report: Report) -> Iterator[str]:
    """Yield a line with the first numbers of four workers: text ids have the same."""
    for seen in report.of(Seen):
        ours, *others = (
            first(seen.ids[name.replace("`", "")]) for name in (INTEGER, *COLUMNS)
        )
        yield row((f"first numbers of four workers: {ours}", *others))


def first(ids: list[str]) -> str:
    """Return the ids of the first turn."""
    return ", ".join(dict.fromkeys(map(as_code, ids[:4])))
