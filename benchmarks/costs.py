"""The table of costs in README, from the same results as the page."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.databases import POSTGRES, TITLES
from benchmarks.goals import CREATE, GRAPH, INTEGER, REQUEST, RIVALS, ROWS, TEXT
from benchmarks.markdown import (
    as_code,
    figure,
    head,
    in_words,
    label_of,
    place_of,
    row,
    speed,
)
from benchmarks.results import Peers, Report, Result, Seen

# Rows of the page.
TASKS = (
    f"{CREATE}, {TEXT}",
    f"{REQUEST}, {TEXT}",
    f"{GRAPH}, {TEXT}",
    f"{GRAPH}, {TEXT}, 1,000 orders, 10 ms away",
    f"{ROWS}, {TEXT}",
)
COLUMNS = tuple(RIVALS.values())
CORNER = "PostgreSQL to the worst of the databases"
LEGEND = """\
CPU time, with our numbers already in memory. *25% faster*: the other takes 25% longer.

- *request*: insert an order with five lines; *graph*: insert 2,000 such orders
- *10 ms away*: elapsed time with two reservations, each query delayed by 10 ms
- *bulk rows*: by COPY on PostgreSQL, else by `executemany()`
- *`nextval()`* (PostgreSQL): a query gets the keys of a `BigAutoField` in advance
- *indexes* (PostgreSQL): size after 1.2 million inserts by one process (by eight that
  take turns)

django-sequences leaves no gaps. [More](docs/explanation/benchmarks.md): integer keys,
tests."""


def rendered(report: Report) -> str:
    """Return the legend and the table."""
    lines = [*head(CORNER, *COLUMNS)]
    for task in TASKS:
        cells = [cell(report.results, task, name) for name in COLUMNS]
        lines.append(row((task, *cells)))
    return "\n".join([LEGEND, "", *lines, *indexes(report), *first_ids(report), ""])


def cell(results: list[Result], task: str, rival: str) -> str:
    """Return the figures of the page's row: beside a key, got in each way."""
    figures: dict[str, dict[str, float]] = {}
    for found in results:
        beside = found.goal.beside
        if label_of(found) == task and f"{beside},".startswith(f"{rival},"):
            way = beside[len(rival) :].removeprefix(", ")
            figures.setdefault(way, {})[place_of(found)] = speed(found)
    shown = [f"{way}: " * bool(way) + span(speeds) for way, speeds in figures.items()]
    return "; ".join(shown) or "not measured"


def span(speeds: dict[str, float]) -> str:
    """Return the figure of PostgreSQL, to the worst of all databases."""
    first = in_words(speeds[TITLES[POSTGRES]])
    worst = in_words(min(speeds.values()))
    much, _, way = first.partition(" ")
    most, _, same_way = worst.partition(" ")
    if first == worst:
        return first
    return f"{much} to {most} {way}" if way == same_way else f"{first} to {worst}"


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
        return f"{one} ({eight}) MB"

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
