from __future__ import annotations

from django_hilo.ranges import Range
from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule
from django_hilo.sources.values import Value


class Storage(Value):
    """A place where another system keeps a stored number.

    All that takes an alias runs on that connection, in a transaction of its own.
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        raise NotImplementedError  # pragma: no cover - each kind has its own

    def draw(
        self, db: str, rule: Rule, size: int, needed: int, above: int
    ) -> list[Range]:
        """Take ``size`` ids or more by a rule, all of them over ``above``."""
        raise NotImplementedError  # pragma: no cover

    def read(self, db: str) -> int | None:
        """Return the stored number, None where there is none yet; takes no lock.

        Of a sequence, what the next ``nextval`` gives, or one that is higher.
        """
        raise NotImplementedError  # pragma: no cover

    def raise_to(self, db: str, rule: Rule, stored: int) -> None:
        """Raise the stored number to at least ``stored``; it never falls."""
        raise NotImplementedError  # pragma: no cover

    def faults(self, db: str, rule: Rule) -> list[Fault]:
        """Compare the storage with what the catalog of the database says of it."""
        raise NotImplementedError  # pragma: no cover
