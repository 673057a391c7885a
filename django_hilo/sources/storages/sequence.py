from __future__ import annotations

from typing import NamedTuple

from django.db import DataError, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.deconstruct import deconstructible

from django_hilo.attempts import short_transaction
from django_hilo.exceptions import CounterExhausted, SourceMismatch
from django_hilo.ranges import Range
from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule
from django_hilo.sources.storages import sequence_sql
from django_hilo.sources.storages.base import Storage
from django_hilo.sources.storages.row import near_limit

_TRIES = 10


class State(NamedTuple):
    """What the catalog says of a sequence."""

    next: int
    increment: int
    highest: int
    cycles: bool


@deconstructible(path="django_hilo.sources.storages.Sequence")
class Sequence(Storage):
    """A sequence of the database, PostgreSQL's or MariaDB's.

    Its INCREMENT BY must be what the rule adds for a block: this is looked up together
    with each draw, so that a sequence that somebody altered gives nothing; nor does one
    that starts anew at its end.
    """

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence

    @property
    def name(self) -> str:
        return f"the sequence {self.sequence}"

    def draw(
        self, db: str, rule: Rule, size: int, needed: int, above: int
    ) -> list[Range]:
        found: list[Range] = []
        for _ in range(_TRIES):
            with short_transaction(db) as connection:
                for first, last in self._drawn(connection, rule, size):
                    for ids in rule.ids_between(first, last):
                        found += _over(above, ids, rule)
            if _count(found) >= needed:
                return found
            if found:
                size = needed + rule.block
            elif above:
                # It fell back under what this process has seen.
                self.raise_to(db, rule, rule.stored_over(above))
                # PostgreSQL's CACHE: what this session took before comes first.
                size *= 2
        raise SourceMismatch(
            f"{self.name} on {db!r} gave fewer than {needed} ids over {above} in "
            f"{_TRIES} tries. Look at where it stands."
        )

    def _drawn(
        self, connection: BaseDatabaseWrapper, rule: Rule, size: int
    ) -> list[tuple[int, int]]:
        """Return the first and last values of runs without a gap."""
        count = -(-size // rule.block)
        sql = self._sql(connection)
        try:
            found = sql.draw(connection, self.sequence, rule.increment, count)
        except (DataError, Error) as error:
            if sql.is_used_up(error):
                raise CounterExhausted(
                    f"{self.name} on {connection.alias!r} is at its highest value: "
                    f"{str(error).strip()}. Widen it: ALTER SEQUENCE ... AS bigint, "
                    f"MAXVALUE."
                ) from error
            raise
        if not found:
            raise SourceMismatch(str(self._fault(connection, rule)))
        return found

    def _fault(self, connection: BaseDatabaseWrapper, rule: Rule) -> Fault | None:
        """Return why the sequence gives nothing, or soon will give nothing."""
        state = self._state(connection)
        if state is None:
            return Fault(
                f"There is no sequence {self.sequence!r} on {connection.alias!r}.",
                "Let the partner make its schema, or create it by a migration.",
                is_certain=False,
            )
        if state.increment != rule.increment:
            return Fault(
                f"{self.name} on {connection.alias!r} has INCREMENT BY "
                f"{state.increment}, and the source says {rule.increment}: ids would "
                f"be given twice.",
                "Set the size of the source to the partner's. Never alter the "
                "increment while a partner runs.",
            )
        if state.cycles:
            return Fault(
                f"{self.name} on {connection.alias!r} starts anew at its end (CYCLE): "
                f"ids would be given twice.",
                "ALTER SEQUENCE ... NO CYCLE.",
            )
        return near_limit(self.name, state.next, state.highest, rule)

    def _state(self, connection: BaseDatabaseWrapper) -> State | None:
        found = self._sql(connection).state(connection, self.sequence)
        return None if found is None else State(*found)

    def _sql(
        self, connection: BaseDatabaseWrapper
    ) -> sequence_sql.PostgreSQL | sequence_sql.MariaDB:
        if not sequence_sql.exist_on(connection):
            raise SourceMismatch(str(self._no_sequences(connection)))
        return sequence_sql.of(connection)

    def _no_sequences(self, connection: BaseDatabaseWrapper) -> Fault:
        return Fault(
            f"{connection.display_name} has no sequences, and {self.name} on "
            f"{connection.alias!r} would be one.",
            "Use a source that is a row of a table.",
        )

    def read(self, db: str) -> int | None:
        state = self._state(connections[db])
        return None if state is None else state.next

    def raise_to(self, db: str, rule: Rule, stored: int) -> None:
        with short_transaction(db) as connection:
            self._sql(connection).raise_to(connection, self.sequence, stored)

    def faults(self, db: str, rule: Rule) -> list[Fault]:
        connection = connections[db]
        if not sequence_sql.exist_on(connection):
            return [self._no_sequences(connection)]
        fault = self._fault(connection, rule)
        return [] if fault is None else [fault]


def _over(above: int, ids: Range, rule: Rule) -> list[Range]:
    if ids.high <= above:
        return []
    return [rule.clip(Range(max(ids.low, above + 1), ids.high))]


def _count(ranges: list[Range]) -> int:
    return sum(each.size for each in ranges)
