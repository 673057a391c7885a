"""Counters in a sequence of the database."""

from typing import Any

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.deconstruct import deconstructible

from django_hilo._database.retry import short_transaction
from django_hilo.counters.ranges import Range
from django_hilo.counters.source import Fault
from django_hilo.exceptions import CounterExhausted, SourceMismatch
from django_hilo.sources.formulas import Formula
from django_hilo.sources.storages.base import State, Storage, near_limit
from django_hilo.sources.storages.catalog import named, quoted
from django_hilo.sources.storages.mariadb import MariaDB
from django_hilo.sources.storages.postgresql import PostgreSQL

_TRIES = 10
# Each number is a range if another site has the numbers in between: a large draw would
# cost more than it spares.
_MOST_APART = 1024


@deconstructible(path="django_hilo.sources.storages.Sequence")
class Sequence(Storage):
    """A sequence of PostgreSQL or MariaDB.

    Its INCREMENT BY must be what the formula adds for a block, and it must not have
    CYCLE. Each draw checks both, so that a sequence which was altered meanwhile raises
    an error.
    """

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence

    @property
    def name(self) -> str:
        return f"the sequence {self.sequence}"

    def draw(
        self, db: str, formula: Formula, size: int, at_least: int, minimum: int
    ) -> list[Range]:
        found: list[Range] = []
        missing, beyond = at_least, None
        for _ in range(_TRIES):
            with short_transaction(db) as connection:
                runs = self._drawn(connection, formula, size, missing)
            for first, last in runs:
                for ids in formula.ids_between(first, last):
                    low = max(ids.low, minimum + 1)
                    high = min(ids.high, formula.max_number)
                    if low <= high:
                        found.append(Range(low, high))
                        missing -= high - low + 1
                    if ids.high > formula.max_number:
                        beyond = ids
            if missing <= 0:
                return found
            if beyond is not None:
                formula.clip(beyond, at_least)
            if found:
                size = at_least + formula.block
            elif minimum:
                # It fell back under what this process has seen.
                self.raise_to(db, formula, formula.stored_over(minimum))
                # PostgreSQL's CACHE: what this session took before comes first.
                size *= 2
        raise SourceMismatch(
            f"{self.name} on {db!r} gave fewer than {at_least} ids above {minimum} in "
            f"{_TRIES} tries. Check its current value."
        )

    def _drawn(
        self,
        connection: BaseDatabaseWrapper,
        formula: Formula,
        size: int,
        at_least: int,
    ) -> list[tuple[Any, ...]]:
        """Return the first and last values of runs without a gap."""
        count, least = (-(-ids // formula.block) for ids in (size, at_least))
        sql = self._sql(connection)
        state = self._checked(sql.state(connection), connection, formula)
        # A statement that fails at the end of a sequence loses what it drew. By this
        # count nothing is left while MariaDB gives the last values of its cache.
        left = (state.highest - state.following) // state.increment + 1
        if 0 < left < least:
            raise self._exhausted(connection, f"fewer than {least} values are left")
        count = min(count, max(left, least))
        if state.increment != formula.increment:
            count = max(least, min(count, _MOST_APART))
        try:
            found = sql.draw(connection, formula.increment, count)
        except Error as error:
            if sql.is_used_up(error):
                raise self._exhausted(connection, str(error).strip()) from error
            raise
        # Somebody who altered it may have committed while the draw waited for the lock.
        self._checked(sql.state(connection), connection, formula)
        return found

    def usable(self, connection: BaseDatabaseWrapper, formula: Formula) -> State:
        """Return the state of the sequence, or raise SourceMismatch."""
        state = self._sql(connection).state(connection)
        return self._checked(state, connection, formula)

    def _checked(
        self, state: State | None, connection: BaseDatabaseWrapper, formula: Formula
    ) -> State:
        fault = self._mismatch(state, connection, formula)
        if state is None or fault is not None:
            raise SourceMismatch(str(fault))
        return state

    def _mismatch(
        self, state: State | None, connection: BaseDatabaseWrapper, formula: Formula
    ) -> Fault | None:
        if state is None:
            return Fault(
                f"There is no sequence {self.sequence!r} on {connection.alias!r}.",
                "Let the partner create its schema, or create it in a migration.",
                is_certain=False,
            )
        if state.increment == 0:
            return Fault(
                f"{self.name} on {connection.alias!r} has INCREMENT BY 0: it counts in "
                f"steps of the server's auto_increment_increment, which Galera "
                f"changes, but the source needs steps of {formula.increment}.",
                f"Run: ALTER SEQUENCE ... INCREMENT BY {formula.increment} NOCACHE. "
                f"Galera allows CACHE only with INCREMENT BY 0.",
            )
        if state.increment != formula.increment:
            return Fault(
                f"{self.name} on {connection.alias!r} has INCREMENT BY "
                f"{state.increment}, but the source has {formula.increment}: ids would "
                f"be given twice.",
                "Set the size of the source to the partner's. Never change the "
                "increment while a partner runs.",
            )
        if state.cycles:
            return Fault(
                f"{self.name} on {connection.alias!r} restarts at its end (CYCLE): ids "
                f"would be given twice.",
                "Run: ALTER SEQUENCE ... NO CYCLE",
            )
        return None

    def _exhausted(
        self, connection: BaseDatabaseWrapper, reason: str
    ) -> CounterExhausted:
        return CounterExhausted(
            f"{self.name} on {connection.alias!r} is exhausted: {reason}. Widen it: "
            f"ALTER SEQUENCE ... AS bigint, MAXVALUE."
        )

    def _sql(self, connection: BaseDatabaseWrapper) -> PostgreSQL | MariaDB:
        if connection.vendor == "postgresql":
            return PostgreSQL("to_regclass(%s)", [named(connection, self.sequence)])
        if getattr(connection, "mysql_is_mariadb", False):
            return MariaDB(quoted(connection, self.sequence))
        raise SourceMismatch(str(self._no_sequences(connection)))

    def _no_sequences(self, connection: BaseDatabaseWrapper) -> Fault:
        return Fault(
            f"{connection.display_name} has no sequences, but {self.name} on "
            f"{connection.alias!r} is declared as one.",
            "Let the partner count in a table, and use that: hibernate.Pooled(..., "
            "table=), nhibernate.HiLo, doctrine.Table.",
        )

    def read(self, db: str) -> int | None:
        connection = connections[db]
        state = self._sql(connection).state(connection)
        if state is not None and state.next is None:
            raise SourceMismatch(
                f"The next value of {self.name} on {db!r} cannot be read before its "
                f"first value is drawn. Run: GRANT SELECT ON SEQUENCE {self.sequence} "
                f"to the role."
            )
        return None if state is None else state.next

    def raise_to(self, db: str, formula: Formula, stored: int) -> None:
        with short_transaction(db) as connection:
            state = self.usable(connection, formula)
            if stored > state.highest:
                reason = f"it would become {stored}, but its limit is {state.highest}"
                raise self._exhausted(connection, reason)
            self._sql(connection).raise_to(connection, state, stored)

    def faults(self, db: str, formula: Formula) -> list[Fault]:
        connection = connections[db]
        try:
            state = self._sql(connection).state(connection)
        except SourceMismatch:
            return [self._no_sequences(connection)]
        fault = self._mismatch(state, connection, formula)
        if fault is None and state is not None:
            fault = near_limit(self.name, state.following, state.highest, formula)
        return [] if fault is None else [fault]
