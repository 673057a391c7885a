"""The base class of storages."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from django_hilo.counters.ranges import Range
from django_hilo.counters.source import Fault
from django_hilo.sources.formulas import Formula, Value

# Many values are drawn in one statement; others may draw in between, so runs come back.
RUNS = (
    "SELECT min(v), max(v) FROM (SELECT v, v - row_number() OVER (ORDER BY v) * {step} "
    "AS run FROM drawn WHERE v IS NOT NULL) AS runs GROUP BY run ORDER BY 1"
)


class State(NamedTuple):
    """The state of a sequence, by the catalog of the database.

    ``next`` is None if nobody drew a value and the role may draw, but not look.
    ``name`` is its name in SQL, on PostgreSQL.
    """

    next: int | None
    start: int
    increment: int
    highest: int
    cycles: bool
    name: str = ""

    @property
    def following(self) -> int:
        """The next value, or the best guess."""
        return self.start if self.next is None else self.next


class Storage(Value, ABC):
    """A place where another system keeps a stored number.

    All that takes an alias runs on that connection, in a transaction of its own.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the storage in messages."""

    @abstractmethod
    def draw(
        self, db: str, formula: Formula, size: int, at_least: int, minimum: int
    ) -> list[Range]:
        """Take ``size`` ids or more by a formula, all of them over ``minimum``."""

    @abstractmethod
    def read(self, db: str) -> int | None:
        """Return the stored number, None if there is none yet; takes no lock.

        Of a sequence, what the next ``nextval`` gives, or one that is higher.
        """

    @abstractmethod
    def raise_to(self, db: str, formula: Formula, stored: int) -> None:
        """Raise the stored number to at least ``stored``; it never falls."""

    @abstractmethod
    def faults(self, db: str, formula: Formula) -> list[Fault]:
        """Compare the storage with what the catalog of the database says of it."""


def near_limit(name: str, stored: int, limit: int, formula: Formula) -> Fault | None:
    """Return a fault if nine tenths of the numbers, or of the ids, are used.

    ``limit`` is the highest number that the place of ``stored`` takes.
    """
    if stored > limit // 10 * 9:
        return Fault(
            f"{name} is {stored}; its type allows at most {limit}.",
            "Widen it to bigint, and the partner's type too, before it is exhausted.",
            is_certain=stored + formula.increment > limit,
        )
    highest = formula.highest(stored)
    if highest > formula.max_number // 10 * 9:
        return Fault(
            f"{name} has given ids up to {highest}; max_number is "
            f"{formula.max_number}.",
            "Widen the partner's type and the columns of its ids, then raise "
            "max_number.",
            is_certain=highest >= formula.max_number,
        )
    return None
