"""The model of hilo.pml in Python: it tells what the code must do next.

The same row, the same steps, the same rules, without bounds. Where the code may hold
more than the model (several ranges, several numbers at once) it does as the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count


@dataclass(frozen=True)
class Row:
    """The row in the database; tickets are numbered as they come."""

    max: int = 0
    floor: int = 0
    low: int = 0
    ticket: int = 0
    lent: bool = False


@dataclass
class Held:
    """What is left of a range: the numbers ``next`` to ``high``."""

    next: int
    high: int
    ticket: int
    lent: bool = False

    @property
    def left(self) -> int:
        return self.high - self.next + 1


@dataclass(frozen=True)
class Message:
    """A return: the numbers over ``last``, up to ``high``, go back."""

    high: int
    last: int
    ticket: int
    lent: bool = False


@dataclass(frozen=True)
class Skipped:
    """A reservation skipped the numbers over ``met`` and under ``first``."""

    met: int
    first: int

    def has(self, number: int) -> bool:
        return self.met < number < self.first


def take(ranges: list[Held], n: int) -> list[int] | None:
    """Take ``n`` numbers out of the first ranges, or none where fewer are left."""
    if sum(held.left for held in ranges) < n:
        return None
    numbers: list[int] = []
    for held in ranges:
        while held.next <= held.high and len(numbers) < n:
            numbers.append(held.next)
            held.next += 1
    while ranges and not ranges[0].left:
        del ranges[0]
    return numbers


class Counter:
    """The row, what was given of it, and the transaction that has its lock."""

    def __init__(self) -> None:
        self.row: Row | None = None
        self.given: set[int] = set()
        # Whose open transaction wrote the row, and what a rollback brings back: SQLite.
        self.writer: Process | None = None
        self._before: Row | None = None
        self._tickets = count(1)

    def reserve(self, size: int, minimum: int, *, lent: bool = False) -> Held:
        row = self.row or Row()
        low = max(row.max, row.floor, minimum) + 1
        high = low + size - 1
        self.row = Row(high, row.floor, low, next(self._tickets), lent)
        return Held(low, high, self.row.ticket, lent)

    def accepts(self, message: Message) -> bool:
        """Whether a return is taken: the rule of the protocol."""
        row = self.row
        if row is None or message.high != row.max:
            return False
        if message.lent:
            is_newest, lowest = row.lent, row.low
        else:
            is_newest, lowest = message.ticket == row.ticket, row.low - 1
        return is_newest and max(lowest, row.floor) <= message.last <= message.high

    def deliver(self, message: Message) -> bool:
        if not self.accepts(message):
            return False
        assert self.row is not None
        row = self.row
        self.row = Row(message.last, row.floor, row.low, next(self._tickets))
        return True

    def raise_floor(self, number: int) -> None:
        row = self.row or Row()
        floor = max(row.floor, number)
        if (floor, max(row.max, floor)) != (row.floor, row.max):
            ticket = next(self._tickets)
            self.row = Row(max(row.max, floor), floor, row.low, ticket)

    def is_free_for(self, process: Process | None) -> bool:
        """Whether a process may write the row now."""
        return self.writer is None or self.writer is process

    def lock(self, process: Process) -> None:
        """Let the open transaction of a process hold the row, and all writers off."""
        if self.writer is None:
            self.writer, self._before = process, self.row

    def unlock(self, process: Process, *, keep: bool) -> None:
        """End the transaction of a process: keep the row, or bring the old one back."""
        if self.writer is process:
            if not keep:
                self.row = self._before
            self.writer = self._before = None

    @property
    def met(self) -> int:
        """What the next reservation finds."""
        return max(self.row.max, self.row.floor) if self.row else 0

    @property
    def committed(self) -> Row | None:
        """The row as others see it."""
        return self.row if self.writer is None else self._before


@dataclass(eq=False)
class Process:
    """A process: what it holds, and its transaction.

    ``binds``: what is reserved inside the transaction belongs to it, as on SQLite.
    """

    counter: Counter
    capacity: int
    binds: bool = False
    ranges: list[Held] = field(default_factory=list)
    seen: int = 0
    # All that it gave, rolled back or not.
    own: set[int] = field(default_factory=set)
    # What it gave in transactions that were rolled back, and the highest such number.
    burnt: set[int] = field(default_factory=set)
    highest_burnt: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    # The row's Max was at least this.
    stored: int = 0
    in_transaction: bool = False
    bound: list[Held] = field(default_factory=list)
    bound_seen: int = 0
    bound_skipped: list[Skipped] = field(default_factory=list)
    tentative: set[int] = field(default_factory=set)

    def use(self, n: int, *, unsure: bool = False) -> list[int]:
        """Give ``n`` numbers; reserve a range if fewer are in memory.

        ``unsure``: the answer to the first COMMIT is lost, and the range burnt.
        """
        numbers = take(self.ranges, n)
        if numbers is None and self.is_bound:
            numbers = self._use_bound(n)
        while numbers is None:
            if unsure:
                self.counter.reserve(max(self.capacity, n), self.seen)
                unsure = False
            self._reserve(n)
            numbers = take(self.ranges, n)
        self.own.update(numbers)
        return numbers

    def _use_bound(self, n: int) -> list[int]:
        numbers = take(self.bound, n)
        while numbers is None:
            self._reserve_bound(n)
            numbers = take(self.bound, n)
        self.tentative.update(numbers)
        # Whatever becomes of the transaction, it does not give them again.
        self.highest_burnt = numbers[-1]
        self.seen = max(self.seen, self.highest_burnt)
        return numbers

    def _reserve(self, n: int) -> None:
        held, skipped = self._reserve_any(n)
        self.ranges.append(held)
        self.skipped.append(skipped)
        self.seen = max(self.seen, held.high)
        self.stored = max(self.stored, held.high)

    def _reserve_bound(self, n: int) -> None:
        self.counter.lock(self)
        held, skipped = self._reserve_any(n, binds=True)
        self.bound.append(held)
        self.bound_skipped.append(skipped)
        self.bound_seen = held.high

    def _reserve_any(self, n: int, *, binds: bool = False) -> tuple[Held, Skipped]:
        met = lowest = self.counter.met
        # It fell back: others may have the numbers from there.
        if met < self.stored:
            lowest = self.stored
            if not binds:
                self.stored = met
        held = self.counter.reserve(max(self.capacity, n), self.seen)
        return held, Skipped(lowest, held.next)

    def save_again(self, numbers: set[int]) -> dict[int, bool]:
        """Return which burnt numbers it keeps, and of each whether that is for good.

        Reserves a range unless an earlier reservation has told.
        """
        if not self.has_been_told(max(numbers)):
            if self.is_bound:
                self._reserve_bound(0)
            else:
                self._reserve(0)
        for_good = {n for n in numbers for each in self.skipped if each.has(n)}
        kept = {n for n in numbers for each in self.bound_skipped if each.has(n)}
        self.tentative |= kept - for_good
        self.burnt -= kept | for_good
        return {n: n in for_good for n in kept | for_good}

    def has_been_told(self, number: int) -> bool:
        """Whether a reservation has told of a burnt number."""
        told = self.skipped + self.bound_skipped
        return any(each.first > number for each in told)

    @property
    def is_bound(self) -> bool:
        return self.binds and self.in_transaction

    def would_write(self, n: int) -> bool:
        """Whether ``n`` numbers take a reservation."""
        held = [*self.ranges], [*self.bound] if self.is_bound else []
        return all(sum(each.left for each in ranges) < n for ranges in held)

    @property
    def newest(self) -> Held | None:
        """The range that it can return; an older one, the counter would refuse."""
        newest = max(self.ranges, key=lambda held: held.high, default=None)
        return newest if newest and newest.left else None

    def send(self) -> Message:
        """Let go of the newest range, and return it."""
        newest = self.newest
        assert newest is not None
        if self.is_bound:
            self.counter.lock(self)
        message = Message(newest.high, newest.next - 1, newest.ticket)
        newest.high = message.last
        self.stored = min(self.stored, message.last)
        return message

    def hear(self, message: Message) -> None:
        """Learn that a return was taken."""
        if self.seen == message.high:
            self.seen = max(message.last, self.highest_burnt)

    def begin(self, *, binds: bool) -> None:
        self.in_transaction, self.binds = True, binds

    def commit(self) -> None:
        self.ranges += [held for held in self.bound if held.left]
        self.seen = max(self.seen, self.bound_seen)
        self.stored = max(self.stored, self.bound_seen)
        self.skipped += self.bound_skipped
        self._end(keep=True)

    def rollback(self) -> None:
        self.burnt |= self.tentative
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        self.counter.unlock(self, keep=keep)
        self.in_transaction = False
        self.bound, self.bound_seen, self.tentative = [], 0, set()
        self.bound_skipped = []

    def crash(self) -> None:
        """End; another process starts in its place."""
        self.rollback()
        self.ranges, self.own, self.burnt, self.skipped = [], set(), set(), []
        self.seen = self.highest_burnt = self.stored = 0
