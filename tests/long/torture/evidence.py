"""What the journals of a run say, thread by thread and process by process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.long.torture.counters import counter_of, number_of
from tests.support.journal import Entry, read

KEPT, UNDONE, UNKNOWN = "kept", "undone", "unknown"
Row = tuple[str, str, str]  # model, id, name


@dataclass(eq=False)
class Block:
    """A transaction, or a block in one that can roll back by itself."""

    outer: Block | None
    # Empty while open, which it stays where its process was killed.
    outcome: str = ""
    # Whether only the table told the outcome.
    was_unknown: bool = False
    shut_at: int = 0
    rows: list[Row] = field(default_factory=list)
    inner: list[Block] = field(default_factory=list)

    @property
    def path(self) -> tuple[Block, ...]:
        return (*self.outer.path, self) if self.outer else (self,)

    def standing(self) -> list[Row]:
        """Return the rows that stand if all around the block commits."""
        inner = [block for block in self.inner if block.outcome == KEPT]
        return self.rows + [row for block in inner for row in block.standing()]

    def fallen(self) -> list[Row]:
        """Return the rows of inner blocks that rolled back."""
        found = []
        for block in self.inner:
            found += block.fallen()
            if block.outcome != KEPT:
                found += block.standing()
        return found

    def is_cut_short(self) -> bool:
        """Whether an inner block is open, so that no commit can have begun."""
        return any(not block.outcome for block in self.inner)

    def outcomes(self) -> set[str]:
        """Return the outcomes of the block and of all around it."""
        return {block.outcome for block in self.path}


@dataclass(eq=False)
class Reserved:
    """A range that a process reserved."""

    counter: str
    low: int
    high: int
    asked_at: int
    at: int
    is_bound: bool
    block: Block | None
    process: Process
    # What is left of it after returns.
    top: int = 0

    @property
    def void_block(self) -> Block | None:
        """The block that rolled the range back, as it can where it is bound."""
        if not self.is_bound or self.block is None:
            return None
        return next((b for b in self.block.path if b.outcome == UNDONE), None)

    @property
    def may_be_void(self) -> bool:
        """Whether only the database knew whether the range was rolled back."""
        outcomes = self.block.outcomes() if self.is_bound and self.block else set()
        return UNKNOWN in outcomes and UNDONE not in outcomes


@dataclass(eq=False)
class Given:
    """Numbers, one after the other, that a caller got."""

    counter: str
    low: int
    high: int
    asked_at: int
    at: int
    block: Block | None
    process: Process
    # "given" out of memory, or, noted after something else, "had"; "got" from the
    # site; "lent" to the program; "kept" by an object of before.
    word: str = "given"


@dataclass
class Return:
    """A return that was taken, or may have been."""

    counter: str
    high: int
    last: int
    at: int
    block: Block | None
    process: Process
    is_certain: bool


@dataclass
class Chosen:
    """A row whose id somebody chose."""

    number: int
    block: Block
    process: Process


@dataclass(eq=False)
class Process:
    """What one process noted, in all its threads."""

    seat: int
    reserved: list[Reserved] = field(default_factory=list)
    end: str = "killed"
    first: int = 0
    last: int = 0
    # Explicit numbers whose floor it could not write.
    unstored: list[int] = field(default_factory=list)


@dataclass
class Evidence:
    """All that the journals say."""

    processes: dict[int, Process] = field(default_factory=dict)
    given: list[Given] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)
    transactions: list[Block] = field(default_factory=list)
    chosen: list[Chosen] = field(default_factory=list)
    # The numbers that somebody chose, or tried to.
    choosing: set[int] = field(default_factory=set)
    # (kind, ids, process)
    collided: list[tuple[str, list[str], Process]] = field(default_factory=list)
    # Names of rows whose INSERT was under way when something went wrong.
    may_exist: set[str] = field(default_factory=set)
    counted: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    counting: Counter[str] = field(default_factory=Counter)
    # Ids that objects kept when they were saved again, and how often each model's
    # objects did, were not saved or got another: ("kept", "left" or "reborn", model).
    kept: list[Given] = field(default_factory=list)
    again: Counter[tuple[str, str]] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    retries: int = 0
    alone: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def reserved(self) -> Iterable[Reserved]:
        return (each for p in self.processes.values() for each in p.reserved)


def collect(folder: Path) -> Evidence:
    """Read all journals of a run."""
    evidence = Evidence()
    for path in sorted(folder.glob("*.log")):
        seat = int(path.name.split("-")[0])
        process = evidence.processes.setdefault(seat, Process(seat))
        reader = _Reader(evidence, process)
        for entry in read(path):
            reader.read(entry)
        reader.close()
    for process in evidence.processes.values():
        process.reserved.sort(key=lambda reserved: reserved.at)
    return evidence


class _Reader:
    """Reads the journal of one thread."""

    def __init__(self, evidence: Evidence, process: Process) -> None:
        self._evidence = evidence
        self._process = process
        self._block: Block | None = None
        # When the thread asked for what is being read: after the line before.
        self._asked_at = 0
        # The names of rows that are being made.
        self._made: list[str] = []
        # Since when a range is being reserved, and what is being returned.
        self._reserving_at: int | None = None
        self._returning: tuple[str, int, int] | None = None
        self._retries = 0

    def read(self, entry: Entry) -> None:
        evidence, process = self._evidence, self._process
        first, *rest = entry.rest.split(" ")
        match entry.word:
            case "retry":
                self._retries += 1
                evidence.retries += 1
            case "given" | "got" | "lent" | "had":
                for span in rest:
                    low, high = map(int, span.split("-"))
                    self._give(entry.at, first, low, high, entry.word)
            case "counting":
                evidence.counting[first] += 1
            case "counted":
                evidence.counted[first].append(int(rest[0]))
            case "making":
                # In a transaction those that failed before, and were caught, are gone.
                self._made = rest
            case "choosing":
                evidence.choosing.add(int(first))
            case "collided":
                self._made = []
                evidence.collided.append((first, rest, process))
            case "did":
                evidence.done[entry.rest] += 1
            case "ended":
                process.end = first
            case "alone":
                evidence.alone.append(float(first))
            case "unstored":
                process.unstored += [int(first)] if first else []
            case "warned":
                evidence.warnings[entry.rest[:70]] += 1
            case "failed":
                said = entry.rest.removesuffix("\\n").rpartition("\\n")[2]
                evidence.failures.append(f"Seat {process.seat}: {said}")
            case "web" | "forked" | "forking":
                pass
            case _:
                getattr(self, f"on_{entry.word}")(entry.at, first, *rest)
        self._asked_at = entry.at
        self._process.first = self._process.first or entry.at
        self._process.last = max(self._process.last, entry.at)

    def close(self) -> None:
        """Take what was under way at the end as a kill left it."""
        self._lose()
        self._evidence.may_exist.update(self._made)
        block = self._block
        while block is not None and block.outer is not None:
            block = block.outer
        if block is not None:
            block.outcome = UNDONE if block.is_cut_short() else UNKNOWN
            self._evidence.transactions.append(block)

    def _lose(self) -> None:
        """Note a return that may have been done, though nobody said so."""
        if self._returning:
            self._note_return(self._asked_at, is_certain=False)
        self._reserving_at = None
        self._retries = 0

    def on_reserving(self, at: int, *_: str) -> None:
        self._lose()
        self._reserving_at = at

    def on_range(self, at: int, counter: str, low: str, high: str, kind: str) -> None:
        asked_at = self._reserving_at or self._asked_at
        self._reserving_at, self._retries = None, 0
        reserved = Reserved(
            *(counter, int(low), int(high), asked_at, at, kind == "bound"),
            *(self._block, self._process),
            top=int(high),
        )
        self._process.reserved.append(reserved)

    def on_locked(self, at: int, *what: str) -> None:
        """Forget what a lock kept from being done, unless it was tried before."""
        if self._returning and self._retries:
            self._note_return(at, is_certain=False)
        self._reserving_at = self._returning = None
        self._retries = 0

    def on_returning(self, at: int, counter: str, high: str, last: str) -> None:
        self._lose()
        self._returning = counter, int(high), int(last)

    def on_returned(self, at: int, *what: str) -> None:
        self._note_return(at, is_certain=True)
        self._retries = 0

    def on_refused(self, at: int, *what: str) -> None:
        self._evidence.refused += 1
        if self._retries:
            # A try that was lost may have been taken: the next was refused for that.
            self._note_return(at, is_certain=False)
        self._returning, self._retries = None, 0

    def _note_return(self, at: int, *, is_certain: bool) -> None:
        assert self._returning is not None
        counter, high, last = self._returning
        self._evidence.returns.append(
            Return(counter, high, last, at, self._block, self._process, is_certain)
        )
        self._returning = None

    def _give(
        self, at: int, counter: str, low: int, high: int, word: str = "given"
    ) -> None:
        asked_at, block = self._asked_at, self._block
        given = Given(counter, low, high, asked_at, at, block, self._process, word)
        self._evidence.given.append(given)

    def on_reborn(self, at: int, model: str, id: str, name: str) -> None:
        self._evidence.again["reborn", model] += 1
        self.on_born(at, model, id, name)

    def on_left(self, at: int, model: str, count: str) -> None:
        self._evidence.again["left", model] += int(count)

    def on_kept(self, at: int, model: str, id: str, name: str) -> None:
        self._evidence.again["kept", model] += 1
        counter, number = counter_of(model), number_of(id)
        assert counter is not None
        asked_at, block = self._asked_at, self._block
        kept = Given(
            counter, number, number, asked_at, at, block, self._process, "kept"
        )
        self._evidence.kept.append(kept)
        self._row(model, id, name)

    def on_born(self, at: int, model: str, id: str, name: str) -> None:
        counter = counter_of(model)
        if counter:
            number = number_of(id)
            self._give(at, counter, number, number)
        self._row(model, id, name)

    def _row(self, model: str, id: str, name: str) -> None:
        assert self._block is not None, f"{id} was inserted outside of any block."
        self._block.rows.append((model, id, name))
        if name in self._made:
            self._made.remove(name)

    def on_chosen(self, at: int, id: str, name: str) -> None:
        self._row("Plain", id, name)
        assert self._block is not None
        chosen = Chosen(number_of(id), self._block, self._process)
        self._evidence.chosen.append(chosen)

    def on_open(self, at: int, *_: str) -> None:
        block = Block(self._block)
        if self._block is not None:
            self._block.inner.append(block)
        self._block = block

    def on_shut(self, at: int, outcome: str) -> None:
        block = self._block
        assert block is not None
        block.outcome, block.shut_at = outcome, at
        self._block = block.outer
        if block.outer is None:
            self._evidence.transactions.append(block)
            if outcome == UNKNOWN:
                self._evidence.may_exist.update(self._made)
            self._made = []

    def on_step(self, at: int, *kind: str) -> None:
        self._lose()
        self._evidence.tried[" ".join(kind)] += 1

    def on_error(self, at: int, kind: str, *text: str) -> None:
        self._lose()
        self._evidence.errors[f"{kind}: {' '.join(text)}"[:70]] += 1
