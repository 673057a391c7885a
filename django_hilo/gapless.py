"""Gapless numbers: one by one, in the caller's transaction (RavenDB's identities)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.conf import settings
from django_hilo.exceptions import CounterExhausted, ReservationTimeout
from django_hilo.failures import Failure, classify
from django_hilo.identifiers import MAX_NUMBER, check_collection
from django_hilo.models import GaplessCounter

# What MySQL counts where ON DUPLICATE KEY UPDATE changed a row.
_ROWS_OF_AN_UPDATE = 2


def next_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the next gapless number of a collection on the database ``using``.

    The counter stays locked until the caller's transaction ends, and a rollback gives
    the number back: so there are no gaps, and one writer at a time. Numbers start at 1.
    Raises `InvalidDocumentId`, `CounterExhausted`, and `ReservationTimeout` where
    another transaction keeps the counter for longer than ``HILO["LOCK_TIMEOUT"]``.
    """
    collection = check_collection(collection).lower()
    connection = connections[using]
    take = _take_by_mysql if connection.vendor == "mysql" else _take
    try:
        with transaction.atomic(using=using):
            number = take(connection, collection)
    except Error as error:
        if classify(error, connection.vendor) is not Failure.LOCKED:
            raise
        raise ReservationTimeout(
            f"Another transaction keeps the gapless numbers of {collection!r} on "
            f"{using!r} for longer than {settings.LOCK_TIMEOUT:g} s "
            f"(HILO['LOCK_TIMEOUT']). Keep such transactions short."
        ) from error
    if number is None:
        raise CounterExhausted(
            f"The gapless numbers of {collection!r} on {using!r} have reached 2^63-1. "
            f"Lower GaplessCounter.last if it was set by mistake."
        )
    return number


# One statement makes the row or takes the next number: an UPDATE of a row that is
# missing would lock the gap, in which several first callers block each other.


def _take(connection: BaseDatabaseWrapper, collection: str) -> int | None:
    table = connection.ops.quote_name(GaplessCounter._meta.db_table)
    statement = f"""
        INSERT INTO {table} (collection, last) VALUES (%s, 1)
        ON CONFLICT (collection) DO UPDATE SET last = {table}.last + 1
        WHERE {table}.last < %s RETURNING last
    """  # noqa: S608 - the name of our own table
    with connection.cursor() as cursor, _waiting_briefly(connection):
        cursor.execute(statement, [collection, MAX_NUMBER])
        row = cursor.fetchone()
    return row[0] if row else None


@contextmanager
def _waiting_briefly(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Bound the wait for locks on PostgreSQL; the caller's own bound comes back."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        _set_lock_timeout(cursor, f"{ceil(settings.LOCK_TIMEOUT * 1000)}ms")
        yield
        _set_lock_timeout(cursor, before)


def _set_lock_timeout(cursor: Any, value: str) -> None:
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", [value])


def _take_by_mysql(connection: BaseDatabaseWrapper, collection: str) -> int | None:
    table = connection.ops.quote_name(GaplessCounter._meta.db_table)
    wait = ""
    if connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        seconds = ceil(settings.LOCK_TIMEOUT)
        wait = f"SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR "
    statement = f"""
        {wait} INSERT INTO {table} (collection, last) VALUES (%s, 1)
        ON DUPLICATE KEY UPDATE last = IF(last < %s, last + 1, last)
    """  # noqa: S608 - the name of our own table
    with connection.cursor() as cursor:
        cursor.execute(statement, [collection, MAX_NUMBER])
        changed = cursor.rowcount == _ROWS_OF_AN_UPDATE
    counters = GaplessCounter.objects.using(connection.alias)
    number = counters.get(pk=collection).last
    return number if changed or number == 1 else None
