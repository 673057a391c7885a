"""What differs between databases, as plain ORM for a database that nobody tested."""

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

# The attribute of an own connection behind a pooler, which nobody else would close.
POOLED = "hilo_is_pooled"


class ErrorKind(enum.Enum):
    """What to do after a database error."""

    RETRY = "a new transaction may succeed"
    RECONNECT = "the connection is lost, a new one may work"
    LOCKED = "the row stayed locked, or a limit or a person canceled the statement"
    NO_TABLE = "the tables of django_hilo are missing"
    NO_COLUMN = "a table is of an older version"
    OTHER = "a second try would fail too"


class Dialect:
    """A database that django-hilo has not been tested on."""

    # Its name in messages; "" if it is not tested.
    name = ""
    # Only one transaction writes at a time: a reservation inside the caller's
    # transaction has to be part of it.
    has_one_writer = False
    # Counters use the process's own connection outside transactions too, since waits
    # are bounded by variables of the session.
    always_own_connection = False
    # Texts that differ in case, accents or spaces at the end may be equal.
    compares_loosely = False
    # Integer keys are drawn from the sequence of their column.
    draws_keys_from_sequence = False
    # Integer keys come from our counter, which raises the column's own numbering along.
    raises_key_default = False

    # What to say of conflicts inside a transaction, if an option prevents them.
    prevents_conflicts = ""

    def classify(self, error: Exception) -> ErrorKind:
        """Return the kind of an error of Django's, whose cause is the driver's."""
        is_operational = isinstance(error, OperationalError)
        return ErrorKind.RETRY if is_operational else ErrorKind.OTHER

    def is_full(self, error: Exception) -> bool:
        """Whether no connection was free: of the server, a pooler or a pool."""
        return False

    def confirm_locked(self, connection: BaseDatabaseWrapper) -> None:
        """Raise another error if a server answers LOCKED though nothing is locked."""

    def is_busy(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether a statement or a transaction of plain SQL is under way; no query."""
        return False

    def has_rolled_back(
        self, connection: BaseDatabaseWrapper, error: Exception
    ) -> bool:
        """Whether the database has ended a transaction by this error."""
        return False

    def prepare_own(self, connection: BaseDatabaseWrapper, longest: int) -> None:
        """Prepare the own connection, not open yet, to wait ``longest`` seconds."""

    def begin(self, connection: BaseDatabaseWrapper, *, locks_row: bool) -> None:
        """Prepare the short transaction that has just begun, to lock a row or not.

        Bounds the wait for locks to ``HILO["LOCK_TIMEOUT"]``, and the time that a lost
        process may keep them to half of it, so that the others do not wait in vain.
        """

    @contextmanager
    def bounded_wait(
        self, connection: BaseDatabaseWrapper, *, locks_row: bool = True
    ) -> Iterator[None]:
        """Bound the wait for locks in the caller's transaction within the block."""
        yield

    def locked(self, connection: BaseDatabaseWrapper, row: Model) -> Any:
        """Lock and return the row with the key of this one, which may be missing."""
        rows = type(row)._default_manager.using(connection.alias)
        # First: SQLite fails at once if a transaction reads first and writes later.
        rows.bulk_create([row], ignore_conflicts=True)
        return rows.select_for_update().get(pk=row.pk)

    def id_type(self, max_length: int) -> str | None:
        """Return the column type of text ids, None for Django's own."""
        return None

    def last_default(self, connection: BaseDatabaseWrapper, table: str) -> list[Any]:
        """Return the last key that the database gave to a row by itself, if any."""
        return []

    def raise_default(
        self, connection: BaseDatabaseWrapper, table: str, number: int
    ) -> None:
        """Raise the database's own numbering of a table's keys to ``number``."""

    def lower_default(
        self, connection: BaseDatabaseWrapper, table: str, high: int, last: int
    ) -> None:
        """Lower the numbering of a table's keys to ``last`` if it is at ``high``."""


def lower_option(options: dict[str, Any], name: str, seconds: int) -> None:
    """Lower a timeout in a database's OPTIONS; 0 or none is without end."""
    given = ceil(float(options.get(name) or 0))
    options[name] = min(given, seconds) if given > 0 else seconds


def rows_of(
    connection: BaseDatabaseWrapper, query: str, parameters: Any = None
) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows, if it gives any."""
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall()) if cursor.description else []
