from __future__ import annotations

from abc import ABC, abstractmethod

from django_hilo.counters.ranges import Range
from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule
from django_hilo.sources.values import Value


class Storage(Value, ABC):
    """A place where another system keeps a stored number.

    All that takes an alias runs on that connection, in a transaction of its own.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @abstractmethod
    def draw(
        self, db: str, rule: Rule, size: int, needed: int, above: int
    ) -> list[Range]:
        """Take ``size`` ids or more by a rule, all of them over ``above``."""

    @abstractmethod
    def read(self, db: str) -> int | None:
        """Return the stored number, None where there is none yet; takes no lock.

        Of a sequence, what the next ``nextval`` gives, or one that is higher.
        """

    @abstractmethod
    def raise_to(self, db: str, rule: Rule, stored: int) -> None:
        """Raise the stored number to at least ``stored``; it never falls."""

    @abstractmethod
    def faults(self, db: str, rule: Rule) -> list[Fault]:
        """Compare the storage with what the catalog of the database says of it."""
