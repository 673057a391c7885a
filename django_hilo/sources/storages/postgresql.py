"""Sequences of PostgreSQL."""

from typing import Any

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import rows_of
from django_hilo._database.dialects.postgresql import WITH_STANDBY
from django_hilo.conf import settings
from django_hilo.exceptions import SourceMismatch
from django_hilo.sources.storages.base import RUNS, State
from django_hilo.sources.storages.catalog import named, quoted

# How far a sequence is raised by drawing, in a few milliseconds.
_DRAWN_AT_MOST = 10_000

_STATE = (
    "SELECT start_value, increment, maximum_value, cycle_option, "
    "has_sequence_privilege(seqrelid, 'SELECT'), "
    "CASE WHEN has_sequence_privilege(seqrelid, 'SELECT, USAGE') "
    "THEN pg_sequence_last_value(seqrelid) END "
    "FROM pg_catalog.pg_sequence, pg_sequence_parameters(seqrelid)"
)
# The default of a column that owns a sequence may draw from another one: it is
# nextval('a_name'::regclass), with the name as it is quoted in a text.
_OF_COLUMN = f"""
WITH own AS (
    SELECT pg_get_expr(adbin, adrelid) AS expression FROM pg_catalog.pg_attrdef
    JOIN pg_catalog.pg_attribute ON attrelid = adrelid AND attnum = adnum
    WHERE adrelid = to_regclass(%s) AND attname = %s
), named AS (
    SELECT expression, CASE WHEN expression IS NULL
        THEN pg_get_serial_sequence(%s, %s)
        ELSE replace(substring(expression FROM
            '^nextval\\(''((?:[^'']|'''')+)''::regclass\\)$'), '''''', '''')
        END AS sequence
    FROM (SELECT (SELECT expression FROM own) AS expression) AS one
)
SELECT sequence, expression, state.* FROM named LEFT JOIN LATERAL (
    {_STATE} WHERE seqrelid = to_regclass(sequence)
) AS state ON true
"""


class PostgreSQL:
    """The statements for a sequence of PostgreSQL."""

    def draw(
        self, connection: BaseDatabaseWrapper, sequence: str, increment: int, count: int
    ) -> list[tuple[Any, ...]]:
        """Draw values; return the first and last of each run without a gap."""
        runs = rows_of(
            connection,
            "WITH drawn AS MATERIALIZED (SELECT nextval(%s::regclass) AS v "
            f"FROM generate_series(1, %s)) {RUNS.format(step=int(increment))}",
            [named(connection, sequence), count],
        )
        if settings.SYNCHRONOUS_COMMIT in WITH_STANDBY:
            # nextval() logs 32 values ahead: the session that takes the others has
            # nothing to commit, and would not wait for the session that does.
            message = "SELECT pg_logical_emit_message(true, 'django_hilo', '')"
            rows_of(connection, message)
        return runs

    def state(self, connection: BaseDatabaseWrapper, sequence: str) -> State | None:
        """Return the state of a sequence, None if it does not exist.

        All but its existence is as of now, not as of the transaction's snapshot.
        """
        found = rows_of(
            connection,
            f"{_STATE} WHERE seqrelid = to_regclass(%s)",
            [named(connection, sequence)],
        )
        return self._state(connection, sequence, found[0]) if found else None

    def of_column(
        self, connection: BaseDatabaseWrapper, table: str, column: str
    ) -> tuple[str | None, str | None, State | None]:
        """Return the sequence of a column, its default as SQL, and its state.

        The sequence is that of the default, or, without a default, the one that the
        column owns, as an identity column does; None if that is not one.
        """
        of = [connection.ops.quote_name(table), column]
        [(sequence, default, *found)] = rows_of(connection, _OF_COLUMN, of * 2)
        is_one = sequence is not None and found[0] is not None
        state = self._state(connection, sequence, found) if is_one else None
        return sequence, default, state

    def _state(
        self, connection: BaseDatabaseWrapper, sequence: str, found: Any
    ) -> State:
        start, increment, highest, cycles, may_select, last = found
        following = None if last is None else last + increment
        if last is None and may_select:
            # Nobody drew since it was made or restarted.
            [(value, is_called)] = rows_of(
                connection,
                f"SELECT last_value, is_called FROM {quoted(connection, sequence)}",
                [],  # for the name, see quoted()
            )
            following = value + increment if is_called else value
        return State(following, start, increment, highest, cycles)

    def raise_to(
        self, connection: BaseDatabaseWrapper, sequence: str, state: State, value: int
    ) -> None:
        """Let the next value be ``value`` or more.

        setval() could lower a sequence that others draw from. A short way is drawn:
        USAGE is enough for that, and nobody waits for it. A long way is a restart.
        """
        following = state.next
        if following is None:
            following = self._draw_for_nobody(connection, sequence, 1) + state.increment
        steps = -(-(value - following) // state.increment)
        if steps > _DRAWN_AT_MOST:
            self._restart(connection, sequence, state.increment, value)
        while 0 < steps <= _DRAWN_AT_MOST:
            last = self._draw_for_nobody(connection, sequence, steps)
            # Values that a CACHE kept for this session come first.
            steps = -(-(value - state.increment - last) // state.increment)

    def _draw_for_nobody(
        self, connection: BaseDatabaseWrapper, sequence: str, count: int
    ) -> int:
        """Draw ``count`` values, and return the highest."""
        return max(int(last) for _, last in self.draw(connection, sequence, 1, count))

    def _restart(
        self, connection: BaseDatabaseWrapper, sequence: str, increment: int, value: int
    ) -> None:
        name = quoted(connection, sequence)
        try:
            with connection.cursor() as cursor:
                # It changes nothing, but keeps nextval() of all others waiting.
                cursor.execute(f"ALTER SEQUENCE {name} INCREMENT BY {increment}", [])
                locked = self.state(connection, sequence)
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
                f"The sequence {sequence} on {connection.alias!r} cannot be raised to "
                f"{value} by this role: {str(error).strip()}. As its owner, run: ALTER "
                f"SEQUENCE {sequence} RESTART WITH {value}"
            ) from error

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        cause = error.__cause__
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        return code == "2200H"
