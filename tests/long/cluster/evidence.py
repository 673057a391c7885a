"""What the journals of a load say, and whether it kept the promises."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.journal import Entry, read

# A quiet machine has many times as many.
FEWEST_CHANGES = 20


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


class Call(NamedTuple):
    """A call that a worker made; its end, and what came of it."""

    at: int
    seat: int
    kind: str
    seconds: float
    outcome: str


@dataclass
class Evidence:
    """All that the workers noted."""

    given: list[Given] = field(default_factory=list)
    # By counter.
    spans: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    calls: list[Call] = field(default_factory=list)
    # (code, place)
    retries: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Ids of rows by what became of them.
    rows: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # (code, text)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def repeated(self) -> list[str]:
        """Return each id that was given more than once."""
        times = Counter(one.id for one in self.given)
        return sorted(id for id, count in times.items() if count > 1)

    def overlapping(self) -> list[tuple[Span, Span]]:
        """Return the pairs of ranges of one counter that have numbers in common."""
        return [
            (one, two)
            for spans in self.spans.values()
            for one, two in pairwise(sorted(spans))
            if two.low <= one.high
        ]

    def falling(self) -> list[tuple[str, str]]:
        """Return each id that was not over all that its process had before."""
        pairs = []
        last: dict[tuple[int, str], str] = {}
        for _, seat, id in sorted(self.given):
            key = seat, counter_of(id)
            if key in last and number_of(id) <= number_of(last[key]):
                pairs.append((last[key], id))
            last[key] = id
        return pairs

    def seats(self) -> set[int]:
        """Return the workers that were given ids."""
        return {one.seat for one in self.given}

    def changes(self, counter: str) -> int:
        """Return how often a counter's next range was another process's.

        In time, or by number if that was less often.
        """
        spans = self.spans[counter]
        orders = sorted(spans, key=lambda span: span.at), sorted(spans)
        return min(
            sum(one.seat != two.seat for one, two in pairwise(order))
            for order in orders
        )

    def errors(self) -> Counter[str]:
        """Count the errors that workers got."""
        fine = {"ok", "undone"}
        return Counter(each.outcome for each in self.calls if each.outcome not in fine)

    def longest(self, kind: str, seats: Iterable[int]) -> float:
        """Return the seconds of the longest call of some workers."""
        chosen = [c.seconds for c in self.calls if c.kind == kind and c.seat in seats]
        return max(chosen, default=0.0)

    def __str__(self) -> str:
        rows = {fate: len(ids) for fate, ids in sorted(self.rows.items())}
        ranges = {counter: len(spans) for counter, spans in self.spans.items()}
        return (
            f"{len(self.given)} ids of {len(self.seats())} processes, "
            f"{len(self.repeated())} twice; ranges {ranges}; rows {rows}; tried again "
            f"{dict(self.retries)}; errors {dict(self.errors())}"
        )

    def assert_nothing_twice(self) -> None:
        """No id came twice, and none came late."""
        for what, wrong in (
            ("What must not happen", self.failures),
            ("Given more than once", self.repeated()),
            ("Refused by the table", sorted(self.rows["refused"])),
            ("Ranges that overlap", self.overlapping()),
            ("Not over what the process had before", self.falling()),
        ):
            assert not wrong, f"{what}: {wrong[:9]}"

    def drew_by_turns(self, counter: str, seats: Iterable[int]) -> bool:
        """Whether processes drew from a counter by turns."""
        drew = {span.seat for span in self.spans[counter]}
        return drew == set(seats) and self.changes(counter) >= FEWEST_CHANGES


def counter_of(id: str) -> str:
    """Return the key of the counter that an id came from."""
    collection, _, end = id.partition("/")
    return f"{collection}/{end.partition('-')[2]}"


def number_of(id: str) -> int:
    return int(id.partition("/")[2].partition("-")[0])


def collect(folder: Path, since: int = 0, until: int | None = None) -> Evidence:
    """Read all journals, from a time on, up to another."""
    evidence = Evidence()
    for path in sorted(folder.glob("*.log")):
        _read(
            evidence,
            int(path.name.split("-")[0]),
            (e for e in read(path) if since <= e.at and (not until or e.at <= until)),
        )
    return evidence


def _read(evidence: Evidence, seat: int, entries: Iterable[Entry]) -> None:
    last: dict[str, int] = defaultdict(int)
    # Reserved since it gave up all that it had.
    held: dict[str, list[Span]] = defaultdict(list)
    for at, word, rest in entries:
        match word:
            case "given":
                evidence.given.append(Given(at, seat, rest))
                last[counter_of(rest)] = number_of(rest)
            case "range":
                counter, low, high = rest.split()
                held[counter].append(Span(int(low), int(high), seat, at))
            case "call":
                kind, seconds, outcome = rest.split()
                call = Call(at, seat, kind, float(seconds), outcome)
                evidence.calls.append(call)
            case "retry":
                code, place = rest.split()
                evidence.retries[code, place] += 1
            case "stood" | "undone" | "open" | "refused":
                evidence.rows[word].add(rest)
            case "emptied":
                # What it did not use is free, even if it cannot know that it went back.
                for counter, spans in held.items():
                    evidence.spans[counter] += [
                        span._replace(high=min(span.high, last[counter]))
                        for span in spans
                        if span.low <= last[counter]
                    ]
                held.clear()
            case "warned":
                code, _, text = rest.partition(" ")
                evidence.warnings.append((code, text))
            case "resting":
                pass
            case _:
                evidence.failures.append(f"Worker {seat}: {word} {rest}")
    for counter, spans in held.items():
        evidence.spans[counter] += spans
