"""Generators of other systems, as each works by itself, on a cell in memory.

Written from how those systems calculate, with none of our rules: they test them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# What the number S stands for, in blocks of B; what is under 1 is left out by some.
FORMULAS: dict[str, Callable[[int, int], range]] = {
    "L1": lambda S, B: range(S * B, S * B + B),
    "L2": lambda S, B: range((S - 1) * B + 1, S * B + 1),
    "L3": lambda S, B: range(S * B + 1, (S + 1) * B + 1),
    "L4": lambda S, B: range((S + 1) - B + 1, (S + 1) + 1),
    "L5": lambda S, B: range(S - B + 1, S + 1),
    "L6": lambda S, B: range(S + 1, S + B + 1),
    "L7": lambda S, B: range(S, S + B),
    "L8": lambda S, B: range(S - B, S),
    "M1": lambda S, B: range((S + 1) * B + 1, (S + 2) * B + 1),
}


@dataclass
class Cell:
    """The stored number; None: there is no row. A sequence's is its next value."""

    value: int | None


class Partner(ABC):
    """A process: it holds one block, and reads and writes the cell in one step."""

    def __init__(self, cell: Cell, block: int) -> None:
        self.cell = cell
        self.block = block
        self.held: deque[int] = deque()

    def next(self) -> int:
        while not self.held:
            self.held.extend(self.refill())
        return self.held.popleft()

    @abstractmethod
    def refill(self) -> Iterable[int]:
        """Take a block."""

    def step(self, by: int, start: int = 0) -> int:
        """Add to the cell; return what it was."""
        stored = start if self.cell.value is None else self.cell.value
        self.cell.value = stored + by
        return stored


class LegacyHiLo(Partner):
    """Hibernate's and NHibernate's hilo, seqhilo and Multiple; max_lo is block - 1."""

    def refill(self) -> Iterable[int]:
        max_lo = self.block - 1
        hi = self.step(1) * (max_lo + 1)
        return range(hi + 1 if hi == 0 else hi, hi + max_lo + 1)


class EnhancedHiLo(Partner):
    """Hibernate's optimizer hilo since 5.2.10."""

    def read(self) -> int:
        return self.step(1)

    def refill(self) -> Iterable[int]:
        value = self.read()
        while value < 1:
            value = self.read()
        upper = value * self.block + 1
        return range(upper - self.block, upper)


class EnhancedHiLoLastUsed(EnhancedHiLo):
    def read(self) -> int:
        return self.step(1) + 1


class Pooled(Partner):
    """Hibernate's optimizer pooled since 5.6.8."""

    initial_value = 1
    is_first = True

    def read(self) -> int:
        return self.step(self.block, start=self.initial_value)

    def refill(self) -> Iterable[int]:
        value = self.read()
        is_first, self.is_first = self.is_first, False
        if is_first and value == self.initial_value:
            return [value]
        return range(value - self.block + 1, value + 1)


class PooledLastUsed(Pooled):
    def read(self) -> int:
        return self.step(self.block, start=self.initial_value - 1) + 1


class PooledBelow(Partner):
    """NHibernate's optimizer pooled, Hibernate's before 4.3.11.

    A first read of the initial value takes two blocks: the cell is to be past it.
    """

    def refill(self) -> Iterable[int]:
        value = self.step(self.block)
        assert value > 1, "the counter was to be advanced before"
        return range(value - self.block, value)


class PooledLo(Partner):
    """pooled-lo on a sequence or not last used; EF Core, Doctrine's sequences."""

    def refill(self) -> Iterable[int]:
        value = self.step(self.block, start=1)
        return range(value, value + self.block)


class PooledLoLastUsed(Partner):
    def refill(self) -> Iterable[int]:
        value = self.step(self.block) + 1
        return range(value, value + self.block)


class Marten(Partner):
    """mt_get_next_hi, Polecat: the stored number is the last hi that was given."""

    def refill(self) -> Iterable[int]:
        hi = 0 if self.cell.value is None else self.cell.value + 1
        self.cell.value = hi
        return range(hi * self.block + 1, (hi + 1) * self.block + 1)


class DbalTable(Partner):
    """Doctrine DBAL's TableGenerator, its increment being 1."""

    def refill(self) -> Iterable[int]:
        if self.cell.value is None:
            self.cell.value = 1
            return [1]
        return [self.step(1) + 1]


class Leaf(Partner):
    """UPDATE max_id = max_id + step, then SELECT; the step adapts."""

    def refill(self) -> Iterable[int]:
        max_id = self.step(self.block) + self.block
        ids = range(max_id - self.block, max_id)
        self.block = self.block * 2 if self.block < 100 else 3
        return ids


class TinyID(Partner):
    """With delta 1 and remainder 0."""

    def refill(self) -> Iterable[int]:
        old = self.step(self.block)
        return range(old + 1, old + self.block + 1)


class NHiLo(Partner):
    """The textbook: hi * max_lo + lo, where lo is 0 to max_lo - 1."""

    def refill(self) -> Iterable[int]:
        hi = self.step(1, start=1)
        return [hi * self.block + lo for lo in range(self.block)]


class DjangoSequences(Partner):
    """get_next_values(name, n)."""

    def refill(self) -> Iterable[int]:
        last = self.step(self.block)
        return range(last + 1, last + self.block + 1)
