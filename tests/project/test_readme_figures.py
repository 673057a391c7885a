"""README's figures beside those of the page of benchmarks."""

import re
from itertools import takewhile

import pytest

from benchmarks.markdown import END, START
from tests.support.commands import PROJECT

README = (PROJECT / "README.md").read_text()
PAGE = (PROJECT / "docs/explanation/benchmarks.md").read_text()
FIGURE = re.compile(
    r"\d[\d.,]*(?:x|%|(?:-|\s)?(?:MB|GB|ns|us|ms|milliseconds|seconds|times)\b)"
    r"|\b(?:twice|half) (?:as|the)\b"
)


def problems(readme, page):
    """Return each figure of README that hides something, or that has no source."""
    before, _, rest = readme.partition(START)
    block, _, after = rest.partition(END)
    found = [f"{text} is not in the table" for text in FIGURE.findall(before + after)]
    said = tables(page)
    (_, *keys), *lines = next(tables_of(block))
    for label, *cells in lines:
        for key, cell in zip(keys, cells, strict=True):
            found += hidden(label, key, cell, said)
    return found


def hidden(label, key, cell, said):
    """Yield what is wrong with a cell, whose column compares with a key."""
    task, _, ours = label.partition(": ")
    if task.startswith("indexes, "):
        own = task.removeprefix("indexes, ")
        for name, shown in ((own, ours), (key, cell)):
            sizes = sizes_of(name, said)
            if sizes != re.findall(r"[\d.,]+", shown):
                yield f"{label}: {name} takes {sizes}"
    elif task.startswith("first numbers"):
        for name, shown in (("HiLoBigAutoField", ours), (key, cell)):
            if not ids_of(name, said).startswith(shown):
                yield f"{label}: {name} has other ids"
    else:
        yield from slower(label, key, cell, said)


def slower(task, key, cell, said):
    """Yield what the page has worse than a cell, or besides it, in the same row."""
    rows = {
        beside[len(key) :].removeprefix(", "): dict(zip(head[2:], cells, strict=True))
        for head, *lines in said
        if head[1] == "beside"
        for what, beside, *cells in lines
        if what == task and f"{beside},".startswith(f"{key},")
    }
    shown = dict(each_way(cell)) if cell != "not measured" else {}
    for way in {*rows, *shown}:
        if way not in rows or way not in shown:
            yield f"{task}: {cell} beside {key} ({way}): only one of them has it"
            continue
        first, worst = shown[way]
        if first != rows[way]["PostgreSQL"]:
            yield f"{task}: {first} beside {key}, not {rows[way]['PostgreSQL']}"
        for where, text in rows[way].items():
            if text and speed(text) < speed(worst):
                yield f"{task}: {where} is {text} beside {key}"


def each_way(cell):
    """Yield how a key was got, and a cell's figure and its worst for it.

    "4% to 9% slower; by a query: 2x faster to same" has two.
    """
    for part in cell.split("; "):
        way, text = re.fullmatch(r"(?:(.*): )?(.*)", part).groups()
        first, _, worst = text.partition(" to ")
        if worst and " " not in first:
            first = f"{first} {worst.split()[-1]}"
        yield way or "", (first, worst or first)


def speed(text):
    """Return how many times as fast a cell says that something is."""
    if text == "same":
        return 1
    number, unit, word = re.fullmatch(r"([\d.,]+)(x|%) (faster|slower)", text).groups()
    value = float(number.replace(",", ""))
    times = value if unit == "x" else 1 + value / 100
    return times if word == "faster" else 1 / times


def tables(text):
    return list(tables_of(text))


def tables_of(text):
    """Yield each table as rows of cells, its head first."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("|"):
            rows = [line, *takewhile(lambda each: each.startswith("|"), lines)]
            cells = [[cell.strip() for cell in row[1:-1].split(" | ")] for row in rows]
            yield [cells[0], *cells[2:]]


def sizes_of(key, said):
    lines = under("MB", said)
    return next(cells for name, *cells in lines if key in re.split(", (?=d)", name))


def ids_of(key, said):
    lines = under("ids in the order", said)
    name = key.replace("`", "")
    return next(cell for own, cell in lines if own == f"`{name}`")


def under(start, said):
    """Return the lines of the table whose second head begins so."""
    return next(lines for head, *lines in said if head[1].startswith(start))


def test_readme_shows_the_worst_of_each_task():
    assert problems(README, PAGE) == []


@pytest.mark.parametrize(
    "add", ["It is 29% faster.", "Loads take 13.6x less CPU.", "1.5 ms", "37.0 MB"]
)
def test_a_figure_without_its_counterpart_is_found(add):
    assert problems(f"{README}\n{add}\n", PAGE)


def test_a_worse_counterpart_on_the_page_is_found():
    """In the row of a save, MySQL becomes worse than README says."""
    row = next(line for line in PAGE.splitlines() if "| `create()`, `Hi" in line)
    *cells, _, end = row.split("|")
    worse = PAGE.replace(row, "|".join([*cells, " 99x slower ", end]))
    assert any("MySQL is 99x slower" in each for each in problems(README, worse))


def test_another_figure_than_that_of_the_page_is_found():
    block = README.partition(START)[2].partition(END)[0]
    row = next(line for line in block.splitlines() if "| `create()`, `Hi" in line)
    better = re.sub(r"\d+%", "1%", row, count=1)
    assert better != row
    assert problems(README.replace(row, better), PAGE)


def test_a_smaller_index_than_that_of_the_page_is_found():
    smaller = re.sub(r"(indexes, `HiLoField`: )[\d.]+", r"\g<1>1.5", README)
    assert smaller != README
    assert problems(smaller, PAGE)
