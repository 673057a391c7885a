"""How a stored number becomes a range of ids; pure arithmetic.

S is the number stored before a range is reserved, or the result of ``nextval``. Each
system reads it differently, and the wrong formula gives ids twice. L1, M1 and so on are
our names of the formulas.
"""

from abc import ABC, abstractmethod
from typing import Any

from django.utils.deconstruct import deconstructible

from django_hilo.counters.ranges import Range
from django_hilo.exceptions import CounterExhausted
from django_hilo.identifiers import MAX_NUMBER


class Value:
    """An object that is equal to others with the same attributes, and never changes."""

    def _parts(self) -> dict[str, Any]:
        return {
            name: part for name, part in vars(self).items() if not name.startswith("_")
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part!r}" for name, part in self._parts().items())
        return f"{type(self).__name__}({parts})"


class Formula(Value, ABC):
    """One way to read a stored number; each defines `low_of` and `increment`.

    ``block`` is how many ids one step of the stored number gives, 1 or more.
    ``max_number`` is the highest id: 2147483647 if the partner's type is an ``int``,
    because most systems wrap without an error.
    """

    # What one block adds to the stored number: INCREMENT BY, for a sequence.
    increment: int

    def __init__(self, block: int, max_number: int = MAX_NUMBER) -> None:
        _check_size("block", block)
        _check_size("max_number", max_number)
        if max_number > MAX_NUMBER:
            raise ValueError(f"max_number must be at most 2^63-1, not {max_number}.")
        self.block = block
        self.max_number = max_number

    @property
    def reading(self) -> str:
        """The text that all formulas for one stored number must have in common."""
        parts = [f"{k}={v}" for k, v in self._parts().items() if k != "max_number"]
        return f"{type(self).__name__}({', '.join(parts)})"

    @abstractmethod
    def low_of(self, stored: int) -> int:
        """Return the lowest id of the block of a stored number, by formula alone."""

    def ids_of(self, stored: int) -> Range | None:
        """Return the ids of one block; None if it has none over 0."""
        low = self.low_of(stored)
        high = low + self.block - 1
        return Range(max(low, 1), high) if high >= 1 else None

    def take(self, stored: int, size: int, at_least: int = 1) -> tuple[Range, int]:
        """Return ids of whole blocks, ``size`` or more, and the number to store then.

        Blocks without ids are passed over. Near ``max_number`` there may be fewer ids
        than ``size``, but not than ``at_least``, else `CounterExhausted`.
        """
        first = self.ids_of(stored)
        while first is None:
            stored += self.increment * max(-self.low_of(stored) // self.block, 1)
            first = self.ids_of(stored)
        more = -(-max(size - first.size, 0) // self.block)
        ids = Range(first.low, first.high + more * self.block)
        return self.clip(ids, at_least), stored + (1 + more) * self.increment

    def clip(self, ids: Range, at_least: int = 1) -> Range:
        """Return the ids up to ``max_number``, or raise `CounterExhausted`."""
        high = min(ids.high, self.max_number)
        if high - ids.low + 1 < at_least:
            raise CounterExhausted(
                f"The next ids are {ids.low} to {ids.high}, but {at_least} of them are "
                f"required up to {self.max_number} (max_number). Widen the partner's "
                f"type and column, then raise max_number."
            )
        return Range(ids.low, high)

    def ids_between(self, first: int, last: int) -> list[Range]:
        """Return the ids of the stored numbers first, first + increment, ... last."""
        while first <= last:
            ids = self.ids_of(first)
            if ids is not None:
                return [Range(ids.low, self.low_of(last) + self.block - 1)]
            first += self.increment
        return []

    def highest(self, stored: int) -> int:
        """Return the highest id that anybody may hold while this number is stored."""
        return max(self.low_of(stored) - 1, 0)

    @abstractmethod
    def stored_over(self, number: int) -> int:
        """Return the least stored number from which on all ids are over ``number``."""


@deconstructible(path="django_hilo.sources.formulas.HiLo")
class HiLo(Formula):
    """The stored number counts blocks: S + shift, times block, plus first.

    L1 (Hibernate's and NHibernate's ``hilo``: shift 0, first 0; id 0 is left out), L2
    and L3 (Hibernate's enhanced ``hilo``: first 1, shift -1 or 0), M1 (Marten, Polecat:
    first 1, shift 1), F3 (the textbook, NHiLo: as L1 with block max_lo).
    """

    increment = 1

    def __init__(
        self, block: int, shift: int = 0, first: int = 0, max_number: int = MAX_NUMBER
    ) -> None:
        super().__init__(block, max_number)
        self.shift = shift
        self.first = first

    def low_of(self, stored: int) -> int:
        return (stored + self.shift) * self.block + self.first

    def stored_over(self, number: int) -> int:
        return -((self.first - number - 1) // self.block) - self.shift


class _Additive(Formula):
    """The stored number is an id, or next to one."""

    # The lowest id of a block is S plus this.
    offset: int

    def __init__(self, block: int, max_number: int = MAX_NUMBER) -> None:
        super().__init__(block, max_number)
        self.increment = block

    def low_of(self, stored: int) -> int:
        return stored + self.offset

    def stored_over(self, number: int) -> int:
        return number + 1 - self.offset


@deconstructible(path="django_hilo.sources.formulas.PooledLo")
class PooledLo(_Additive):
    """The stored number is the lowest id: S to S + block - 1.

    L7 (Hibernate's ``pooled-lo``, NHibernate's), E1 (EF Core, Npgsql), D1 (Doctrine's
    SequenceGenerator), F1 (Leaf). With block 1, on a row of a table, ranges may have
    any size.
    """

    offset = 0


@deconstructible(path="django_hilo.sources.formulas.LastUsed")
class LastUsed(_Additive):
    """The stored number is the highest id reserved so far: S + 1 to S + block.

    L6 (Hibernate's ``pooled-lo`` with ``stored_last_used``), D2 (Doctrine's DBAL
    table), F2 (TinyID), F5 (django-sequences), and Max. With block 1, ranges may have
    any size.
    """

    offset = 1


@deconstructible(path="django_hilo.sources.formulas.Pooled")
class Pooled(_Additive):
    """The stored number is the highest id: S - block + 1 to S.

    L5 (Hibernate's ``pooled`` since 4.3.11), with ``last_used`` L4: then it is S + 1.
    The block of ``initial_value``, the generator's, contains only this id.
    """

    def __init__(
        self,
        block: int,
        initial_value: int = 1,
        last_used: bool = False,
        max_number: int = MAX_NUMBER,
    ) -> None:
        super().__init__(block, max_number)
        self.initial_value = initial_value
        self.last_used = last_used
        self.offset = 2 - block if last_used else 1 - block

    def ids_of(self, stored: int) -> Range | None:
        high = self.low_of(stored) + self.block - 1
        if high < 1:
            return None
        # A partner takes the rest of such a block for negative, or for used.
        alone = high == self.initial_value or high < self.block
        return Range(high if alone else high - self.block + 1, high)


@deconstructible(path="django_hilo.sources.formulas.PooledBelow")
class PooledBelow(_Additive):
    """The stored number is the first id after the block: S - block to S - 1.

    L8 (NHibernate's ``pooled``, Hibernate's before 4.3.11). A block that starts below 1
    is skipped.
    """

    def __init__(self, block: int, max_number: int = MAX_NUMBER) -> None:
        super().__init__(block, max_number)
        self.offset = -block

    def ids_of(self, stored: int) -> Range | None:
        low = self.low_of(stored)
        return Range(low, low + self.block - 1) if low >= 1 else None


def _check_size(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}.")
