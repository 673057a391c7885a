"""The interface of counters: our own, and those that other systems own."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from django_hilo._database.which_connection import in_callers_transaction
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.identifiers import MAX_NUMBER


class Fault(NamedTuple):
    """A fault of a counter of another system, and its remedy.

    ``is_certain`` is False if a later migration may remove the fault, such as a table
    that is missing.
    """

    message: str
    remedy: str
    is_certain: bool = True

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


class Source(ABC):
    """A counter that a process draws ranges from; ``using`` is a database alias."""

    # The node tag that its ids show, empty for none.
    node_tag: str = ""

    @property
    def max_number(self) -> int:
        """The highest number that the counter may give."""
        return MAX_NUMBER

    @property
    def name(self) -> str:
        """The name of the counter in messages."""
        return self.key[0]

    @property
    @abstractmethod
    def key(self) -> tuple[str, str]:
        """The key of its ranges in the pool of a process; no other counter has it."""

    # Whether a rollback takes back what its transaction has reserved.
    rolls_back = True

    # Whether a range reserved now on an alias would belong to the caller's transaction.
    in_callers_transaction = staticmethod(in_callers_transaction)

    @abstractmethod
    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        """Reserve the wanted numbers, and commit.

        Returns one range or several, in rising order. Raises the errors of
        `django_hilo.counters.reservation.reserve`.
        """

    @abstractmethod
    def read_max(self, using: str) -> int:
        """Return the highest number that any process may have; takes no lock."""

    def row_floor(self, using: str) -> int:
        """Return the highest number of the rows if the counter may not know it, or 0.

        The first range of a process starts over it.
        """
        return 0

    def minimum_of_rows(self, using: str) -> int:
        """Return the `row_floor` that a reservation needs as its ``minimum``.

        0 if the reservation reads the rows itself, under its lock: an earlier value may
        be out of date.
        """
        return self.row_floor(using)

    @abstractmethod
    def raise_floor(self, using: str, number: int) -> None:
        """Raise the counter so that all later ranges are over ``number``."""

    def faults(self, using: str) -> list[Fault]:
        """Compare the source with the catalog of the database; reads only."""
        return []

    def give_back(self, using: str, reservation: Reservation, last: int) -> bool:
        """Return the numbers over ``last`` of a range; False if they are lost.

        Counters of other systems take nothing back.
        """
        return False
