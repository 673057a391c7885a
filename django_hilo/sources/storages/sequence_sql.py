"""The SQL of sequences, which differs between PostgreSQL and MariaDB."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.sources.storages.catalog import named, quoted, rows_of, schema_and_name

# MariaDB's cache does not tell how many values are left: then they come one by one.
_SINGLE_AT_MOST = 100

# Many values in one statement; others may draw in between, so that runs come back.
_RUNS = (
    "SELECT min(v), max(v) FROM (SELECT v, v - row_number() OVER (ORDER BY v) * {step} "
    "AS run FROM drawn) AS runs GROUP BY run ORDER BY 1"
)


class State(NamedTuple):
    """What the catalog says of a sequence.

    ``next`` is None where the role may draw, but not look at a value that nobody drew.
    """

    next: int | None
    start: int
    increment: int
    highest: int
    cycles: bool


class PostgreSQL:
    """Sequences of PostgreSQL 10 and later."""

    def draw(
        self,
        connection: BaseDatabaseWrapper,
        sequence: str,
        increment: int,
        count: int,
        least: int,
    ) -> list[tuple[int, int]]:
        """Draw up to ``count`` values; none where fewer than ``least`` are left.

        None with another increment either, or with CYCLE. Values that a failed
        statement drew would be lost, so it stops at the last one that there is.
        """
        runs = _RUNS.format(step=int(increment))
        return _pairs(
            rows_of(
                connection,
                "WITH place AS MATERIALIZED (SELECT *, CASE WHEN "
                "has_sequence_privilege(seqrelid, 'SELECT, USAGE') "
                "THEN pg_sequence_last_value(seqrelid) END AS last "
                "FROM pg_catalog.pg_sequence WHERE seqrelid = %s::regclass "
                "AND seqincrement = %s AND NOT seqcycle), "
                # A cache keeps values that the server counts as given.
                "room AS MATERIALIZED (SELECT seqrelid, "
                "last IS NOT NULL AND seqcache = 1 AS is_known, seqcache - 1 + "
                "div(seqmax - coalesce(last, seqstart::numeric - seqincrement), "
                "seqincrement) AS remaining FROM place), "
                "drawn AS MATERIALIZED (SELECT nextval(seqrelid::regclass) AS v "
                "FROM room, "
                "generate_series(1, greatest(least(%s, remaining), 1)::bigint) "
                "WHERE remaining <= 0 OR remaining >= %s OR NOT is_known) "
                f"{runs}",
                [named(connection, sequence), increment, count, least],
            )
        )

    def skip(self, connection: BaseDatabaseWrapper, sequence: str, count: int) -> int:
        """Draw ``count`` values for nobody; return the highest."""
        [(highest,)] = rows_of(
            connection,
            "SELECT max(v) FROM (SELECT nextval(%s::regclass) AS v "
            "FROM generate_series(1, %s) OFFSET 0) AS drawn",
            [named(connection, sequence), count],
        )
        return int(highest)

    def state(self, connection: BaseDatabaseWrapper, sequence: str) -> State | None:
        """Return what is known of a sequence, None where there is none."""
        name = named(connection, sequence)
        found = rows_of(
            connection,
            "SELECT seqstart, seqincrement, seqmax, seqcycle, "
            "has_sequence_privilege(seqrelid, 'SELECT') "
            "FROM pg_catalog.pg_sequence WHERE seqrelid = to_regclass(%s)",
            [name],
        )
        if not found:
            return None
        start, increment, highest, cycles, may_select = found[0]
        if may_select:
            [(last, is_called)] = rows_of(
                connection,
                f"SELECT last_value, is_called FROM {quoted(connection, sequence)}",
            )
        else:
            # USAGE is enough for it, but it does not tell what RESTART set.
            [(last,)] = rows_of(
                connection, "SELECT pg_sequence_last_value(%s::regclass)", [name]
            )
            is_called = True
        following = last + increment if is_called and last is not None else last
        return State(following, start, increment, highest, cycles)

    def parameters(
        self, connection: BaseDatabaseWrapper, sequence: str
    ) -> tuple[int, bool]:
        """Return the increment, and whether it cycles, as they are at this moment.

        Not as of the transaction's snapshot, as in the catalog's table.
        """
        [(increment, cycles)] = rows_of(
            connection,
            "SELECT increment, cycle_option FROM pg_sequence_parameters(%s::regclass)",
            [named(connection, sequence)],
        )
        return increment, cycles

    def restart(
        self, connection: BaseDatabaseWrapper, sequence: str, value: int
    ) -> None:
        """Let the next value be ``value`` or more; the sequence's owner alone may."""
        name = quoted(connection, sequence)
        state = self.state(connection, sequence)
        if state is None:
            return
        # It changes nothing, but keeps nextval() of all others waiting.
        _run(connection, f"ALTER SEQUENCE {name} INCREMENT BY {int(state.increment)}")
        state = self.state(connection, sequence)
        if state is not None and state.next is not None and state.next < value:
            # In whole steps: another site may count the numbers in between.
            steps = -(-(value - state.next) // state.increment)
            start = state.next + steps * state.increment
            _run(connection, f"ALTER SEQUENCE {name} RESTART WITH {int(start)}")

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        return _code(error) == "2200H"

    def is_forbidden(self, error: Exception) -> bool:
        """Whether the role lacks a right."""
        return _code(error) == "42501"


class MariaDB:
    """Sequences of MariaDB 10.3 and later."""

    def draw(
        self,
        connection: BaseDatabaseWrapper,
        sequence: str,
        increment: int,
        count: int,
        least: int,
    ) -> list[tuple[int, int]]:
        """Draw up to ``count`` values; none with another increment, or with CYCLE.

        At its end they come one by one: a statement that fails loses what it drew.
        """
        state = self.state(connection, sequence)
        if state is None or state.increment != increment or state.cycles:
            return []
        last = (state.next or 0) + (count - 1) * increment
        if last <= state.highest:
            return self._draw(connection, sequence, increment, count)
        found: list[tuple[int, int]] = []
        for _ in range(min(count, max(least, _SINGLE_AT_MOST))):
            try:
                found += self._draw(connection, sequence, increment, 1)
            except Error as error:
                if not found or not self.is_used_up(error):
                    raise
                break
        return found

    def _draw(
        self, connection: BaseDatabaseWrapper, sequence: str, increment: int, count: int
    ) -> list[tuple[int, int]]:
        name = quoted(connection, sequence)
        runs = _RUNS.format(step=int(increment))
        # LIMIT keeps NEXTVAL() from being merged into both places that name its value:
        # each would draw its own.
        return _pairs(
            rows_of(
                connection,
                f"WITH drawn AS (SELECT NEXTVAL({name}) AS v "
                f"FROM seq_1_to_{int(count)} LIMIT {int(count)}) {runs}",
            )
        )

    def state(self, connection: BaseDatabaseWrapper, sequence: str) -> State | None:
        """Return what is known of a sequence, None where there is none."""
        known = rows_of(
            connection,
            "SELECT 1 FROM information_schema.tables WHERE table_type = 'SEQUENCE' "
            "AND table_schema = coalesce(%s, database()) AND table_name = %s",
            schema_and_name(sequence),
        )
        if not known:
            return None
        [(following, start, increment, highest, cycles)] = rows_of(
            connection,
            "SELECT next_not_cached_value, start_value, increment, maximum_value, "
            f"cycle_option FROM {quoted(connection, sequence)}",
        )
        return State(following, start, increment, highest, bool(cycles))

    def parameters(
        self, connection: BaseDatabaseWrapper, sequence: str
    ) -> tuple[int, bool]:
        """Return the increment, and whether it cycles, as they are at this moment."""
        [(increment, cycles)] = rows_of(
            connection,
            f"SELECT increment, cycle_option FROM {quoted(connection, sequence)}",
        )
        return increment, bool(cycles)

    def raise_to(
        self, connection: BaseDatabaseWrapper, sequence: str, value: int
    ) -> None:
        """Let the next value be ``value`` or more; SETVAL never lowers.

        What `state` tells is over what the server has yet to give out of its cache.
        """
        rows_of(
            connection,
            f"SELECT SETVAL({quoted(connection, sequence)}, %s, 0)",
            [value],
        )

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        cause = error.__cause__
        return bool(cause is not None and cause.args and cause.args[0] == 4084)


def exist_on(connection: BaseDatabaseWrapper) -> bool:
    """Whether the database has sequences that these statements are for."""
    return connection.vendor == "postgresql" or bool(
        getattr(connection, "mysql_is_mariadb", False)
    )


def of(connection: BaseDatabaseWrapper) -> PostgreSQL | MariaDB:
    """Return the statements for a connection."""
    return PostgreSQL() if connection.vendor == "postgresql" else MariaDB()


def _pairs(rows: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in rows if first is not None]


def _run(connection: BaseDatabaseWrapper, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [])


def _code(error: Exception) -> str | None:
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
