"""The SQL of sequences, which differs between PostgreSQL and MariaDB."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.sources.storages.catalog import quoted, rows_of

_DRAWN_AT_MOST = 1_000_000

# Many values in one statement; others may draw in between, so that runs come back.
_RUNS = (
    "SELECT min(v), max(v) FROM (SELECT v, v - row_number() OVER (ORDER BY v) * {step} "
    "AS run FROM drawn) AS runs GROUP BY run ORDER BY 1"
)


class PostgreSQL:
    """Sequences of PostgreSQL 10 and later."""

    def draw(
        self, connection: BaseDatabaseWrapper, sequence: str, increment: int, count: int
    ) -> list[tuple[int, int]]:
        """Draw ``count`` values; none with another increment, or with CYCLE."""
        runs = _RUNS.format(step=int(increment))
        return _pairs(
            rows_of(
                connection,
                "WITH drawn AS MATERIALIZED (SELECT nextval(seqrelid::regclass) AS v "
                "FROM pg_catalog.pg_sequence, generate_series(1, %s) WHERE seqrelid = "
                f"%s::regclass AND seqincrement = %s AND NOT seqcycle) {runs}",
                [count, quoted(connection, sequence), increment],
            )
        )

    def state(
        self, connection: BaseDatabaseWrapper, sequence: str
    ) -> tuple[int, int, int, bool] | None:
        """Return next value, increment, highest value, and whether it starts anew."""
        name = quoted(connection, sequence)
        known = rows_of(
            connection,
            "SELECT seqincrement, seqmax, seqcycle FROM pg_catalog.pg_sequence "
            "WHERE seqrelid = to_regclass(%s)",
            [name],
        )
        if not known:
            return None
        increment, highest, cycles = known[0]
        [(last, is_called)] = rows_of(
            connection,
            f"SELECT last_value, is_called FROM {name}",
        )
        return last + increment if is_called else last, increment, highest, cycles

    def raise_to(
        self, connection: BaseDatabaseWrapper, sequence: str, value: int
    ) -> None:
        """Let the next value be ``value`` or more; it never falls.

        By drawing, which no other process can mistake; over a long way by a restart
        under a lock, which the sequence's owner alone may take.
        """
        state = self.state(connection, sequence)
        if state is None or state[0] >= value:
            return
        increment = state[1]
        steps = -(-(value - state[0]) // increment)
        if steps <= _DRAWN_AT_MOST:
            self.draw(connection, sequence, increment, steps)
            return
        name = quoted(connection, sequence)
        with connection.cursor() as cursor:
            # It changes nothing, but keeps nextval() of all others waiting.
            cursor.execute(f"ALTER SEQUENCE {name} INCREMENT BY {int(increment)}")
            state = self.state(connection, sequence)
            if state is not None and state[0] < value:
                cursor.execute(f"ALTER SEQUENCE {name} RESTART WITH {int(value)}")

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        cause = error.__cause__
        state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        return bool(state == "2200H")


class MariaDB:
    """Sequences of MariaDB 10.3 and later."""

    def draw(
        self, connection: BaseDatabaseWrapper, sequence: str, increment: int, count: int
    ) -> list[tuple[int, int]]:
        """Draw ``count`` values; none with another increment, or with CYCLE."""
        state = self.state(connection, sequence)
        if state is not None and (state[1] != increment or state[3]):
            return []
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

    def state(
        self, connection: BaseDatabaseWrapper, sequence: str
    ) -> tuple[int, int, int, bool] | None:
        """Return next value, increment, highest value, and whether it starts anew."""
        schema, _, name = sequence.rpartition(".")
        known = rows_of(
            connection,
            "SELECT 1 FROM information_schema.tables WHERE table_type = 'SEQUENCE' "
            "AND table_schema = coalesce(%s, database()) AND table_name = %s",
            [schema or None, name],
        )
        if not known:
            return None
        [(following, increment, highest, cycles)] = rows_of(
            connection,
            "SELECT next_not_cached_value, increment, maximum_value, cycle_option "
            f"FROM {quoted(connection, sequence)}",
        )
        return following, increment, highest, bool(cycles)

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
