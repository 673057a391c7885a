from __future__ import annotations

from django.db import connections
from django.utils.deconstruct import deconstructible

from django_hilo._database.retry import short_transaction
from django_hilo._database.synchronous_commit import insist
from django_hilo.counters.ranges import Range
from django_hilo.exceptions import ConcurrencyError, SourceMismatch
from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule
from django_hilo.sources.storages import catalog
from django_hilo.sources.storages.base import Storage
from django_hilo.sources.storages.row import Row

_TRIES = 100
# Blocks in a range that nobody asked to be longer: each is a request.
_BLOCKS = 100


@deconstructible(path="django_hilo.sources.storages.Function")
class Function(Storage):
    """A stored function that takes a name and returns the number of a new block.

    A negative answer means that another caller came first: it is asked again, each time
    in a new transaction. ``returns`` is what the answer is more than the number stored
    before: 1 for Marten. ``row`` is where the function keeps it.
    """

    def __init__(
        self, function: str, argument: str, row: Row, returns: int = 1
    ) -> None:
        self.function = function
        self.argument = argument
        self.row = row
        self.returns = returns

    @property
    def name(self) -> str:
        return f"the function {self.function}({self.argument!r})"

    def draw(
        self, db: str, rule: Rule, size: int, needed: int, above: int
    ) -> list[Range]:
        if above:
            self.row.raise_to(db, rule, rule.stored_over(above))
        found: list[Range] = []
        count = 0
        while count < needed or (count < size and len(found) < _BLOCKS):
            ids, _ = rule.take(self._call(db) - self.returns, 1)
            found.append(ids)
            count += ids.size
        return found

    def _call(self, db: str) -> int:
        for _ in range(_TRIES):
            with short_transaction(db) as connection:
                function = catalog.quoted(connection, self.function)
                [(answer,)] = catalog.rows_of(
                    connection, f"SELECT {function}(%s)", [self.argument]
                )
                insist(connection)
            if answer is None:
                raise SourceMismatch(
                    f"{self.name} on {db!r} returned NULL, no number of a block. Look "
                    f"at the function and at its row."
                )
            if answer >= 0:
                return int(answer)
        raise ConcurrencyError(
            f"{self.name} on {db!r} found another caller before it {_TRIES} times in a "
            f"row. Give the partner larger blocks, or share its row instead."
        )

    def read(self, db: str) -> int | None:
        return self.row.read(db)

    def raise_to(self, db: str, rule: Rule, stored: int) -> None:
        self.row.raise_to(db, rule, stored)

    def faults(self, db: str, rule: Rule) -> list[Fault]:
        connection = connections[db]
        if connection.vendor != "postgresql":
            return [
                Fault(
                    f"{self.name} is PostgreSQL's, and {db!r} is "
                    f"{connection.display_name}.",
                    "Name the partner's row instead.",
                )
            ]
        known = catalog.rows_of(
            connection,
            "SELECT to_regproc(%s) IS NOT NULL",
            [catalog.named(connection, self.function)],
        )
        if not known[0][0]:
            return [
                Fault(
                    f"There is no function {self.function!r} on {db!r}.",
                    "Let the partner make its schema.",
                    is_certain=False,
                )
            ]
        return self.row.faults(db, rule)
