"""Where ranges come from: our own counter, or one that another system owns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from django.db import connections

from django_hilo._database.connection import in_callers_transaction
from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import MAX_NUMBER


class Fault(NamedTuple):
    """What is wrong with a counter of another system, and what to do.

    ``is_certain`` is False for what may still come, such as a table that a migration
    has yet to make.
    """

    message: str
    remedy: str
    is_certain: bool = True

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


class Source(ABC):
    """What a process draws ranges from; ``using`` is always the alias of a database."""

    @property
    def max_number(self) -> int:
        """The highest number that it may give."""
        return MAX_NUMBER

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.key[0]

    @property
    @abstractmethod
    def key(self) -> tuple[str, str]:
        """What tells its numbers from those of others in the pool of a process."""

    def in_callers_transaction(self, using: str) -> bool:
        """Whether a range reserved now would belong to the caller's transaction."""
        return in_callers_transaction(connections[using])

    @abstractmethod
    def reserve(
        self, using: str, size: int, *, needed: int = 1, above: int = 0
    ) -> list[Reservation]:
        """Reserve ``size`` numbers or more, all over ``above``, and commit.

        They may come in several ranges, in rising order. Near the end of the numbers
        there may be fewer than ``size``, but not than ``needed``. Raises as
        `django_hilo.counters.reservation.reserve`.
        """

    def named(self, reserved: list[Reservation], collection: str) -> list[Reservation]:
        """Return ranges as receivers of `range_reserved` are to know them."""
        return reserved

    @abstractmethod
    def read_max(self, using: str) -> int:
        """Return the highest number that anybody may hold; takes no lock."""

    def row_floor(self, using: str) -> int:
        """Return what rows set as a floor that the counter may not know of, or 0.

        The first range of a process starts over it.
        """
        return 0

    def above_rows(self, using: str) -> int:
        """Return what a reservation must be told to start over of `row_floor`.

        0 where it looks at the rows by itself, under the lock: what was read before may
        have gone back since.
        """
        return self.row_floor(using)

    @abstractmethod
    def raise_floor(self, using: str, number: int) -> None:
        """Keep all coming ranges over a number; the counter never falls."""

    def faults(self, using: str) -> list[Fault]:
        """Return what the database's catalog says against the source; reads only."""
        return []

    def give_back(self, using: str, reservation: Reservation, last: int) -> bool:
        """Give back the numbers over ``last`` of a range; False where they are lost.

        Other systems know of no returns.
        """
        return False
