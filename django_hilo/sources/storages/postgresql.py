"""Sequences of PostgreSQL."""

from typing import Any

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import rows_of
from django_hilo._database.dialects.postgresql import WITH_STANDBY
from django_hilo.conf import settings
from django_hilo.exceptions import SourceMismatch
from django_hilo.sources.storages.base import RUNS, State
from django_hilo.sources.storages.catalog import escaped

# How far a sequence is raised by drawing, in less than a second. A restart waits for
# each transaction that drew from the sequence, and makes others wait.
_DRAWN_AT_MOST = 1_000_000


class PostgreSQL:
    """The statements for a sequence of PostgreSQL.

    ``sequence`` is the SQL that finds it, and ``parameters`` are those of the SQL.
    """

    def __init__(self, sequence: str, parameters: list[str]) -> None:
        self._sequence, self._parameters = sequence, parameters

    def draw(
        self, connection: BaseDatabaseWrapper, increment: int, count: int
    ) -> list[tuple[Any, ...]]:
        """Draw values; return the first and last of each run without a gap."""
        runs = rows_of(
            connection,
            f"WITH drawn AS MATERIALIZED (SELECT nextval({self._sequence}) AS v "
            f"FROM generate_series(1, %s)) {RUNS.format(step=int(increment))}",
            [*self._parameters, count],
        )
        self._wait_for_standby(connection)
        return runs

    def _wait_for_standby(self, connection: BaseDatabaseWrapper) -> None:
        if settings.SYNCHRONOUS_COMMIT in WITH_STANDBY:
            # nextval() logs 32 values ahead: the session that takes the others has
            # nothing to commit, and would not wait for the session that does.
            message = "SELECT pg_logical_emit_message(true, 'django_hilo', '')"
            rows_of(connection, message)

    def state(self, connection: BaseDatabaseWrapper) -> State | None:
        """Return the state of a sequence, None if it does not exist.

        All but its existence is as of now, not as of the transaction's snapshot.
        """
        found = rows_of(
            connection,
            "SELECT start_value, increment, maximum_value, cycle_option, "
            "has_sequence_privilege(seqrelid, 'SELECT'), "
            "CASE WHEN has_sequence_privilege(seqrelid, 'SELECT, USAGE') "
            "THEN pg_sequence_last_value(seqrelid) END, seqrelid::regclass::text "
            "FROM pg_catalog.pg_sequence, pg_sequence_parameters(seqrelid) "
            f"WHERE seqrelid = {self._sequence}",
            self._parameters,
        )
        if not found:
            return None
        start, increment, highest, cycles, may_select, last, name = found[0]
        following = None if last is None else last + increment
        if last is None and may_select:
            # Nobody drew since it was made or restarted.
            [(value, is_called)] = rows_of(
                connection,
                f"SELECT last_value, is_called FROM {escaped(name)}",
                [],  # for the name, see escaped()
            )
            following = value + increment if is_called else value
        return State(following, start, increment, highest, cycles, name)

    def raise_to(
        self, connection: BaseDatabaseWrapper, state: State, value: int
    ) -> None:
        """Let the next value be ``value`` or more.

        setval() could lower a sequence that others draw from. A short way is drawn:
        USAGE is enough for that, and nobody waits for it. A long way is a restart.
        """
        following = state.next
        if following is None:
            following = self._draw_for_nobody(connection, 1) + state.increment
        steps = -(-(value - following) // state.increment)
        if steps > _DRAWN_AT_MOST:
            self._restart(connection, state, value)
        while 0 < steps <= _DRAWN_AT_MOST:
            last = self._draw_for_nobody(connection, steps)
            # Values that a CACHE kept for this session come first.
            steps = -(-(value - state.increment - last) // state.increment)

    def _draw_for_nobody(self, connection: BaseDatabaseWrapper, count: int) -> int:
        """Draw ``count`` values, and return the highest."""
        draw = f"SELECT max(nextval({self._sequence})) FROM generate_series(1, %s)"
        [(last,)] = rows_of(connection, draw, [*self._parameters, count])
        self._wait_for_standby(connection)
        return int(last)

    def _restart(
        self, connection: BaseDatabaseWrapper, state: State, value: int
    ) -> None:
        name, increment = escaped(state.name), state.increment
        try:
            with connection.cursor() as cursor:
                # It changes nothing, but keeps nextval() of all others waiting.
                cursor.execute(f"ALTER SEQUENCE {name} INCREMENT BY {increment}", [])
                locked = self.state(connection)
                if locked is not None and locked.following < value:
                    # In whole steps: another site may count the numbers in between.
                    steps = -(-(value - locked.following) // increment)
                    start = int(locked.following + steps * increment)
                    cursor.execute(f"ALTER SEQUENCE {name} RESTART WITH {start}", [])
        except Error as error:
            cause = error.__cause__
            code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
            if code != "42501":
                raise
            raise SourceMismatch(
                f"The sequence {state.name} on {connection.alias!r} cannot be raised "
                f"to {value} by this role: {str(error).strip()}. As its owner, run: "
                f"ALTER SEQUENCE {state.name} RESTART WITH {value}"
            ) from error

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        cause = error.__cause__
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        return code == "2200H"
