from __future__ import annotations

from itertools import pairwise

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.deconstruct import deconstructible

from django_hilo._database.retry import short_transaction
from django_hilo._database.synchronous_commit import insist
from django_hilo.counters.ranges import Range
from django_hilo.exceptions import CounterExhausted, SourceMismatch
from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule
from django_hilo.sources.storages import raising, sequence_sql
from django_hilo.sources.storages.base import Storage
from django_hilo.sources.storages.limits import near_limit

_TRIES = 10


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
        beyond: Range | None = None
        for _ in range(_TRIES):
            with short_transaction(db) as connection:
                runs = self._drawn(connection, rule, size, needed - _count(found))
                insist(connection)
            for first, last in runs:
                for ids in rule.ids_between(first, last):
                    found += _between(above, ids, rule.max_number)
                    beyond = ids if ids.high > rule.max_number else beyond
            if _count(found) >= needed:
                return found
            if beyond is not None:
                rule.clip(beyond, needed)
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
        self, connection: BaseDatabaseWrapper, rule: Rule, size: int, needed: int
    ) -> list[tuple[int, int]]:
        """Return the first and last values of runs without a gap."""
        count, least = (-(-ids // rule.block) for ids in (size, needed))
        sql = self._sql(connection)
        try:
            found = sql.draw(connection, self.sequence, rule.increment, count, least)
        except Error as error:
            if sql.is_used_up(error):
                raise self._exhausted(connection, str(error).strip()) from error
            raise
        if not found:
            self._refuse(connection, rule, least)
        # Whoever altered it may have committed while the draw waited for its lock.
        increment, cycles = sql.parameters(connection, self.sequence)
        apart = all(
            following[0] >= before[1] + rule.increment
            for before, following in pairwise(found)
        )
        if increment != rule.increment or cycles or not apart:
            raise SourceMismatch(
                f"{self.name} on {connection.alias!r} was altered while ids were drawn "
                f"from it: INCREMENT BY is {increment}, and the source says "
                f"{rule.increment}. Nothing is given; stop its partners, and set both "
                f"alike."
            )
        return found

    def _refuse(self, connection: BaseDatabaseWrapper, rule: Rule, least: int) -> None:
        fault = self._mismatch(connection, rule)
        if fault is None:
            raise self._exhausted(
                connection, f"fewer than {least} values are left, and none was drawn"
            )
        raise SourceMismatch(str(fault))

    def _exhausted(
        self, connection: BaseDatabaseWrapper, reason: str
    ) -> CounterExhausted:
        return CounterExhausted(
            f"{self.name} on {connection.alias!r} is at its highest value: {reason}. "
            f"Widen it: ALTER SEQUENCE ... AS bigint, MAXVALUE."
        )

    def _fault(self, connection: BaseDatabaseWrapper, rule: Rule) -> Fault | None:
        """Return why the sequence gives nothing, or soon will give nothing."""
        fault = self._mismatch(connection, rule)
        state = self._state(connection)
        if fault is not None or state is None:
            return fault
        following = state.start if state.next is None else state.next
        return near_limit(self.name, following, state.highest, rule)

    def _mismatch(self, connection: BaseDatabaseWrapper, rule: Rule) -> Fault | None:
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
        return None

    def _state(self, connection: BaseDatabaseWrapper) -> sequence_sql.State | None:
        return self._sql(connection).state(connection, self.sequence)

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
        if state is not None and state.next is None:
            raise SourceMismatch(
                f"Where {self.name} on {db!r} stands cannot be read before its first "
                f"value is drawn. GRANT SELECT ON SEQUENCE {self.sequence} to the role."
            )
        return None if state is None else state.next

    def raise_to(self, db: str, rule: Rule, stored: int) -> None:
        sql = self._sql(connections[db])
        if isinstance(sql, sequence_sql.PostgreSQL):
            raising.raise_to(db, self.sequence, stored)
            return
        with short_transaction(db) as connection:
            sql.raise_to(connection, self.sequence, stored)

    def faults(self, db: str, rule: Rule) -> list[Fault]:
        connection = connections[db]
        if not sequence_sql.exist_on(connection):
            return [self._no_sequences(connection)]
        fault = self._fault(connection, rule)
        return [] if fault is None else [fault]


def _between(above: int, ids: Range, highest: int) -> list[Range]:
    low, high = max(ids.low, above + 1), min(ids.high, highest)
    return [Range(low, high)] if low <= high else []


def _count(ranges: list[Range]) -> int:
    return sum(each.size for each in ranges)
