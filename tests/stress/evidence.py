"""What the journals of a run say, thread by thread and process by process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.stress.journal import Entry, read


@dataclass
class Span:
    """A range that a process reserved, less what it returned."""

    at: int
    low: int
    high: int
    bound: bool
    reserved_high: int
    process: Process


@dataclass
class Process:
    """What one process noted, in all its threads."""

    seat: int
    spans: list[Span] = field(default_factory=list)
    # (when, number), whatever became of it.
    got: list[tuple[int, int]] = field(default_factory=list)
    # (when, seat of the child)
    forked: list[tuple[int, int]] = field(default_factory=list)
    returned: int = 0
    # "normally", "_exit", or "killed", which leaves no note.
    end: str = "killed"

    @property
    def first(self) -> int:
        return min((at for at, _ in self.got), default=0)

    @property
    def last(self) -> int:
        return max((at for at, _ in self.got), default=0)


@dataclass
class Evidence:
    """All that the journals say."""

    processes: dict[int, Process] = field(default_factory=dict)
    # Numbers of each kind, with repetitions.
    given: list[int] = field(default_factory=list)
    stands: list[int] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)
    # Rows by (id, name): of committed and of rolled-back transactions, and of those
    # whose outcome the table tells.
    committed: set[tuple[str, str]] = field(default_factory=set)
    rolled_back: set[tuple[str, str]] = field(default_factory=set)
    open: set[tuple[str, str]] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    # Errors of the database about a new row's id that it has already.
    repeated: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    born: int = 0


@dataclass
class Stored:
    """What the database holds after a run."""

    rows: list[tuple[str, str]]
    max: int


def collect(folder: Path, stored: Stored) -> Evidence:
    """Read all journals of a run."""
    evidence = Evidence()
    rows = set(stored.rows)
    for path in sorted(folder.glob("*.log")):
        seat = int(path.name.split("-")[0])
        process = evidence.processes.setdefault(seat, Process(seat))
        _Reader(evidence, process, rows).read(read(path))
    for process in evidence.processes.values():
        process.spans.sort(key=lambda span: span.at)
    return evidence


class _Reader:
    """Reads the journal of one thread."""

    def __init__(
        self, evidence: Evidence, process: Process, rows: set[tuple[str, str]]
    ) -> None:
        self.evidence = evidence
        self.process = process
        self.rows = rows
        # Of the transaction that is being read: name by id, "" for an id alone. On
        # SQLite an id may come twice in it, after an inner block rolled back.
        self.taken: list[tuple[str, str]] = []

    def read(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            getattr(self, f"_{entry.word}")(entry.at, *entry.rest.split(" "))
        if self.taken:
            self._unknown(0)

    def _range(self, at: int, low: str, high: str, kind: str) -> None:
        span = Span(at, int(low), int(high), kind == "bound", int(high), self.process)
        self.process.spans.append(span)

    def _returned(self, at: int, last: str) -> None:
        # Noted by the main thread, whose journal comes after those that name ranges.
        mine = [s for s in self.process.spans if s.low - 1 <= int(last) < s.high]
        if not mine:
            text = f"Seat {self.process.seat} returned down to {last}, no range of its."
            self.evidence.failures.append(text)
            return
        self.process.returned += 1
        max(mine, key=lambda span: span.at).high = int(last)

    def _given(self, at: int, *ids: str) -> None:
        numbers = [_number(text) for text in ids]
        self.process.got += [(at, number) for number in numbers]
        self.evidence.given += numbers

    def _born(self, at: int, text: str, name: str) -> None:
        self.evidence.born += 1
        self._drawn(at, text, name)

    def _drawn(self, at: int, text: str, name: str = "") -> None:
        self.process.got.append((at, _number(text)))
        self.taken.append((text, name))

    def _committed(self, at: int, *ids: str) -> None:
        standing = Counter(ids)
        # The last ones of the same id: what came before was rolled back inside.
        for taken in reversed(self.taken):
            if standing[taken[0]] > 0:
                standing[taken[0]] -= 1
                self._stands(taken)
            else:
                self._undone(taken)
        self.taken = []

    def _rolledback(self, at: int, *_: str) -> None:
        for taken in self.taken:
            self._undone(taken)
        self.taken = []

    def _unknown(self, at: int, *_: str) -> None:
        for taken in self.taken:
            self.evidence.open.add(taken)
            if taken in self.rows:
                self._stands(taken)
            else:
                self._undone(taken)
        self.taken = []

    def _stands(self, taken: tuple[str, str]) -> None:
        self.evidence.stands.append(_number(taken[0]))
        if taken[1]:
            self.evidence.committed.add(taken)

    def _undone(self, taken: tuple[str, str]) -> None:
        self.evidence.undone.append(_number(taken[0]))
        if taken[1]:
            self.evidence.rolled_back.add(taken)

    def _forked(self, at: int, seat: str) -> None:
        self.process.forked.append((at, int(seat)))

    def _ended(self, at: int, how: str) -> None:
        self.process.end = how

    def _error(self, at: int, *text: str) -> None:
        self.evidence.errors[" ".join(text)[:60]] += 1

    def _retry(self, at: int, *text: str) -> None:
        self.evidence.retries += 1

    def _repeated(self, at: int, *text: str) -> None:
        self.evidence.repeated.append(" ".join(text))

    def _failed(self, at: int, *text: str) -> None:
        last_line = " ".join(text).removesuffix("\\n").rpartition("\\n")[2]
        self.evidence.failures.append(f"Seat {self.process.seat}: {last_line}")


def _number(text: str) -> int:
    return int(text.removeprefix("orders/").removesuffix("-A"))
