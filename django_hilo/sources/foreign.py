"""A counter that another system owns."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from django.db import Error, connections
from django.utils.deconstruct import deconstructible

from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.own_connection import Result
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.which_connection import commits_alone
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.counters.source import Fault, Source
from django_hilo.exceptions import (
    CounterExhausted,
    HiLoError,
    SourceMismatch,
    TableMissing,
)
from django_hilo.sources.formulas import Formula, Value
from django_hilo.sources.storages.base import Storage


class StoredCounter(Source):
    """A number in a storage, and the formula by which it is read."""

    def __init__(self, storage: Storage, formula: Formula) -> None:
        self.storage = storage
        self.formula = formula

    @property
    def name(self) -> str:
        return self.storage.name

    @property
    def max_number(self) -> int:
        return self.formula.max_number

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        size, at_least, minimum, collection = wanted[:4]
        if size < max(at_least, 1):
            raise ValueError(f"size must be at least {max(at_least, 1)}, not {size!r}.")
        draw = partial(
            self.storage.draw,
            formula=self.formula,
            size=size,
            at_least=at_least,
            minimum=minimum,
        )
        return [
            Reservation(collection or self.name, "", ids, server_prefix="", ticket="")
            for ids in self._attempt(draw, using)
        ]

    def read_max(self, using: str) -> int:
        stored = self.read(using)
        return 0 if stored is None else self.formula.highest(stored)

    def read(self, using: str) -> int | None:
        """Return the number that is stored, None where there is none yet."""
        return self._attempt(self._read, using)

    def _read(self, db: str) -> int | None:
        # An error in here must not end a transaction of the caller's.
        with short_transaction(db):
            return self.storage.read(db)

    def raise_floor(self, using: str, number: int) -> None:
        if number > self.max_number:
            raise CounterExhausted(
                f"{self.name} cannot be raised above {number}: its ids are limited to "
                f"{self.max_number} (max_number), as by the partner's type."
            )
        stored = self.formula.stored_over(number)
        raise_it = partial(self.storage.raise_to, formula=self.formula, stored=stored)
        self._attempt(raise_it, using)

    @abstractmethod
    def _attempt(self, operate: Callable[..., Result], using: str) -> Result:
        """Call ``operate`` as `retry`."""


@deconstructible(path="django_hilo.sources.foreign.ForeignCounter")
class ForeignCounter(Value, StoredCounter):
    """A counter that another system owns: a storage, and how to read its number.

    The modules of `django_hilo.sources` have subclasses. Use this class for a system
    without a module. A reservation has its own transaction. It locks and compares the
    row, and never lowers it.
    """

    @property
    def missing(self) -> str:
        """The argument that the check E026 asks for, "" if none is missing."""
        return ""

    @property
    def key(self) -> tuple[str, str]:
        # A colon is in no collection.
        return f"{self.storage!r}: {self.formula!r}", ""

    def faults(self, using: str) -> list[Fault]:
        return self.storage.faults(using, self.formula)

    def _attempt(self, operate: Callable[..., Result], using: str) -> Result:
        try:
            return retry(
                operate,
                using,
                self.storage.name,
                if_missing=(
                    f"{self.storage.name} on {using!r} is missing. Let the partner "
                    f"create its schema, or create it in a migration."
                ),
            )
        except TableMissing as error:
            raise SourceMismatch(str(error)) from error
        except HiLoError:
            raise
        except Error as error:
            # A second try would fail too: a wrong name, or a lack of rights.
            faults = "; ".join(map(str, self._known_faults(using, error)))
            raise SourceMismatch(
                f"{self.storage.name} on {using!r}: {str(error).strip()}. {faults}"
            ) from error

    def _known_faults(self, using: str, error: Exception) -> list[Fault]:
        connection = connections[using]
        failure = classify(error, connection)
        lost = failure not in {ErrorKind.NO_COLUMN, ErrorKind.OTHER}
        if lost or not commits_alone(connection):
            return []
        try:
            return self.faults(using)
        except Error:
            return []
