"""Sequences of MariaDB."""

from typing import Any

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.dialects.base import rows_of
from django_hilo.sources.storages.base import RUNS, State


class MariaDB:
    """The statements for a sequence of MariaDB, whose name is quoted."""

    def __init__(self, sequence: str) -> None:
        self._sequence = sequence

    def draw(
        self, connection: BaseDatabaseWrapper, increment: int, count: int
    ) -> list[tuple[Any, ...]]:
        """Draw values; return the first and last of each run without a gap."""
        # LIMIT keeps NEXTVAL() from being merged into both places that name its value:
        # each would draw its own.
        return rows_of(
            connection,
            f"WITH drawn AS (SELECT NEXTVAL({self._sequence}) AS v "
            f"FROM seq_1_to_{int(count)} LIMIT {int(count)}) "
            f"{RUNS.format(step=int(increment))}",
            [],  # for the name, see quoted()
        )

    def state(self, connection: BaseDatabaseWrapper) -> State | None:
        """Return the state of a sequence, None if it does not exist.

        Its next value is over those that the server keeps in its cache.
        """
        try:
            [(following, start, increment, highest, cycles)] = rows_of(
                connection,
                "SELECT next_not_cached_value, start_value, increment, maximum_value, "
                f"cycle_option FROM {self._sequence}",
                [],
            )
        except Error as error:
            # A table has no such columns.
            if classify(error, connection) in {ErrorKind.NO_TABLE, ErrorKind.NO_COLUMN}:
                return None
            raise
        return State(following, start, increment, highest, bool(cycles))

    def raise_to(
        self, connection: BaseDatabaseWrapper, state: State, value: int
    ) -> None:
        """Raise the next value to at least ``value``; SETVAL never lowers it.

        Also if the state is over it: values in the server's cache come first.
        """
        rows_of(connection, f"SELECT SETVAL({self._sequence}, %s, 0)", [value])

    def is_used_up(self, error: Exception) -> bool:
        """Whether the sequence is at its highest value."""
        cause = error.__cause__
        return bool(cause is not None and cause.args and cause.args[0] == 4084)
