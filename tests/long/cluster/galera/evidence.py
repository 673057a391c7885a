"""What the journals of a load say."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.journal import Entry, read

# The counter of integer keys: one row, whatever the node.
SHARED = "numbers_item/"


class Given(NamedTuple):
    """A number that an object has."""

    at: int
    seat: int
    number: int


class Span(NamedTuple):
    """A range that a process reserved."""

    low: int
    high: int
    seat: int
    at: int


class Call(NamedTuple):
    """A call that a worker made; its end, and what came of it."""

    at: int
    seat: int
    kind: str
    seconds: float
    outcome: str


class Retry(NamedTuple):
    """A try of a reservation that failed, and was made again."""

    at: int
    seat: int
    code: str
    place: str


@dataclass
class Evidence:
    """All that the workers noted."""

    given: dict[str, list[Given]] = field(default_factory=lambda: defaultdict(list))
    spans: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    calls: list[Call] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    # Rows by what their worker knows of them: (counter, number).
    rows: dict[str, set[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    returned: int = 0
    # Errors for which the end of a range did not go back.
    gaps: Counter[str] = field(default_factory=Counter)
    # The most tries that one range took.
    most_tries: int = 0
    failures: list[str] = field(default_factory=list)

    def repeated(self) -> list[tuple[str, int]]:
        """Return each number that was given more than once."""
        return [
            (counter, number)
            for counter, given in self.given.items()
            for number, times in Counter(one.number for one in given).items()
            if times > 1
        ]

    def overlapping(self) -> list[tuple[Span, Span]]:
        """Return the pairs of ranges that have numbers in common."""
        return [
            (one, two)
            for spans in self.spans.values()
            for one, two in pairwise(sorted(spans))
            if two.low <= one.high
        ]

    def falling(self) -> list[tuple[Given, Given]]:
        """Return each number that was not over all that its process had before."""
        pairs = []
        for given in self.given.values():
            last: dict[int, Given] = {}
            for one in given:
                if one.seat in last and one.number <= last[one.seat].number:
                    pairs.append((last[one.seat], one))
                last[one.seat] = one
        return pairs

    def highest(self, counter: str) -> int:
        """Return the highest number of a counter that any process held."""
        return max((span.high for span in self.spans[counter]), default=0)

    def changes_of_owner(self) -> tuple[int, int]:
        """Return how often the shared counter's next range was another process's.

        In time, and by number.
        """
        spans = self.spans[SHARED]
        orders = sorted(spans, key=lambda span: span.at), sorted(spans)
        in_time, by_number = (
            sum(one.seat != two.seat for one, two in pairwise(order))
            for order in orders
        )
        return in_time, by_number

    def errors(self) -> Counter[str]:
        """Count the errors that workers got."""
        return Counter(c.outcome for c in self.calls if c.outcome != "ok")

    def codes(self) -> set[str]:
        """Return the codes of all errors, of those that were tried again too."""
        codes = {outcome.rpartition(":")[2] for outcome in self.errors()}
        return codes | {retry.code for retry in self.retries} | set(self.gaps)

    def longest(self, kind: str, seats: Iterable[int]) -> float:
        """Return the seconds of the longest call of some workers."""
        chosen = set(seats)
        return max(
            (c.seconds for c in self.calls if c.kind == kind and c.seat in chosen),
            default=0.0,
        )


def collect(folder: Path, since: int = 0, until: int | None = None) -> Evidence:
    """Read all journals, from a time on, up to another."""
    evidence = Evidence()
    end = time.monotonic_ns() if until is None else until
    for path in sorted(folder.glob("*.log")):
        _Reader(evidence, int(path.name.split("-")[0])).read(
            entry for entry in read(path) if since <= entry.at <= end
        )
    return evidence


class _Reader:
    """Reads the journal of one worker."""

    def __init__(self, evidence: Evidence, seat: int) -> None:
        self.evidence = evidence
        self.seat = seat
        self.tries = 1
        self.last_given: dict[str, int] = defaultdict(int)
        # Reserved since it gave up all that it had.
        self.held: dict[str, list[Span]] = defaultdict(list)

    def read(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            getattr(self, f"_{entry.word}")(entry.at, entry.rest)
        for counter, spans in self.held.items():
            self.evidence.spans[counter] += spans

    def _given(self, at: int, rest: str) -> None:
        counter, number = rest.split()
        self.evidence.given[counter].append(Given(at, self.seat, int(number)))
        self.last_given[counter] = int(number)

    def _range(self, at: int, rest: str) -> None:
        counter, low, high = rest.split()
        span = Span(int(low), int(high), self.seat, at)
        self.held[counter].append(span)
        self.evidence.most_tries = max(self.evidence.most_tries, self.tries)
        self.tries = 1

    def _retry(self, at: int, rest: str) -> None:
        self.evidence.retries.append(Retry(at, self.seat, *rest.split()))
        self.tries += 1

    def _call(self, at: int, rest: str) -> None:
        kind, seconds, outcome = rest.split()
        self.evidence.calls.append(Call(at, self.seat, kind, float(seconds), outcome))
        if outcome != "ok":
            self.tries = 1

    def _stood(self, at: int, rest: str) -> None:
        self._row("stood", rest)

    def _undone(self, at: int, rest: str) -> None:
        self._row("undone", rest)

    def _open(self, at: int, rest: str) -> None:
        self._row("open", rest)

    def _row(self, fate: str, rest: str) -> None:
        counter, number = rest.split()
        self.evidence.rows[fate].add((counter, int(number)))

    def _emptied(self, at: int, rest: str) -> None:
        # What it did not use is free, even where it cannot know that it went back.
        for counter, spans in self.held.items():
            last = self.last_given[counter]
            self.evidence.spans[counter] += [
                span._replace(high=min(span.high, last))
                for span in spans
                if span.low <= last
            ]
        self.held.clear()

    def _returned(self, at: int, rest: str) -> None:
        self.evidence.returned += 1

    def _gap(self, at: int, rest: str) -> None:
        self.evidence.gaps[rest] += 1

    def _resting(self, at: int, rest: str) -> None:
        pass

    def _repeated(self, at: int, rest: str) -> None:
        self.evidence.failures.append(f"Worker {self.seat}: {rest}")

    _failed = _repeated
