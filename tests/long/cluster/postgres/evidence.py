"""What the journals of a load say."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.journal import Entry, read


class Given(NamedTuple):
    """An id that a process has."""

    at: int
    seat: int
    id: str


class Span(NamedTuple):
    """A range that a process reserved."""

    low: int
    high: int
    seat: int
    at: int


@dataclass
class Evidence:
    """All that the workers noted."""

    given: list[Given] = field(default_factory=list)
    # By node tag.
    spans: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    # Ids of rows by what became of them.
    rows: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    errors: Counter[str] = field(default_factory=Counter)
    messages: set[str] = field(default_factory=set)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def repeated(self) -> list[str]:
        """Return each id that was given more than once."""
        times = Counter(one.id for one in self.given)
        return sorted(id for id, count in times.items() if count > 1)

    def overlapping(self) -> list[tuple[Span, Span]]:
        """Return the pairs of ranges of one node tag that have numbers in common."""
        return [
            (one, two)
            for spans in self.spans.values()
            for one, two in pairwise(sorted(spans))
            if two.low <= one.high
        ]

    def falling(self) -> list[tuple[str, str]]:
        """Return each id that was not over all that its process had before."""
        pairs = []
        last: dict[int, Given] = {}
        for one in sorted(self.given):
            before = last.get(one.seat)
            if before is not None and number_of(one.id) <= number_of(before.id):
                pairs.append((before.id, one.id))
            last[one.seat] = one
        return pairs

    def highest(self, tag: str) -> int:
        """Return the highest number of a node tag that any process held."""
        return max((span.high for span in self.spans[tag]), default=0)

    def seats(self) -> set[int]:
        """Return the workers that were given ids."""
        return {one.seat for one in self.given}

    def changes(self, tag: str) -> tuple[int, int]:
        """Return how often a counter's next range was another process's.

        In time, and by number.
        """
        spans = self.spans[tag]
        orders = sorted(spans, key=lambda span: span.at), sorted(spans)
        in_time, by_number = (
            sum(one.seat != two.seat for one, two in pairwise(order))
            for order in orders
        )
        return in_time, by_number

    def turns(self) -> int:
        """Return how often the next id was given to another process."""
        return sum(one.seat != two.seat for one, two in pairwise(sorted(self.given)))

    def changes_of_tag(self) -> int:
        """Return how often the next id had another node tag."""
        ids = [one.id for one in sorted(self.given)]
        tags = [id.rpartition("-")[2] for id in ids]
        return sum(one != two for one, two in pairwise(tags))


def number_of(id: str) -> int:
    return int(id.partition("/")[2].partition("-")[0])


def collect(folder: Path, since: int = 0, until: int | None = None) -> Evidence:
    """Read all journals, from a time on, up to another."""
    evidence = Evidence()
    for path in sorted(folder.glob("*.log")):
        seat = int(path.name.split("-")[0])
        for entry in read(path):
            if since <= entry.at and (until is None or entry.at <= until):
                _note(evidence, seat, entry)
    return evidence


def _note(evidence: Evidence, seat: int, entry: Entry) -> None:
    at, word, rest = entry
    match word:
        case "given":
            evidence.given.append(Given(at, seat, rest))
        case "range":
            tag, low, high = rest.split()
            evidence.spans[tag].append(Span(int(low), int(high), seat, at))
        case "returned":
            _shorten(evidence.spans, seat, *rest.split())
        case "stood" | "undone" | "open" | "refused":
            evidence.rows[word].add(rest)
        case "error":
            evidence.errors[rest.split()[0]] += 1
            evidence.messages.add(rest)
        case "warned":
            evidence.warnings.append((seat, rest))
        case _:
            evidence.failures.append(f"Worker {seat}: {word} {rest}")


def _shorten(spans: dict[str, list[Span]], seat: int, tag: str, last: str) -> None:
    """Take the numbers over ``last`` off the newest range of a worker."""
    newest = max(
        (span for span in spans[tag] if span.seat == seat), key=lambda span: span.at
    )
    spans[tag].remove(newest)
    spans[tag].append(newest._replace(high=int(last)))
