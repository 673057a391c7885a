"""Gapless numbers: one by one, in the caller's transaction (RavenDB's identities)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.utils.translation import gettext as _

from django_hilo.conf import settings
from django_hilo.exceptions import (
    CounterExhausted,
    HiLoError,
    InvalidDocumentId,
    ReservationTimeout,
)
from django_hilo.failures import Failure, classify
from django_hilo.identifiers import MAX_NUMBER, check_collection
from django_hilo.models import GaplessCounter

# With more at once, MySQL's answer could not tell a first call from one without room.
_MOST_AT_ONCE = MAX_NUMBER // 2

# What MySQL counts where ON DUPLICATE KEY UPDATE changed a row.
_ROWS_OF_AN_UPDATE = 2


def next_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the next gapless number of a collection, as `next_gapless_numbers`."""
    return next_gapless_numbers(collection, 1, using)[0]


def next_gapless_numbers(
    collection: str, n: int, using: str = DEFAULT_DB_ALIAS
) -> range:
    """Return the next ``n`` (1 to 2^62-1) gapless numbers of a collection on ``using``.

    The counter stays locked until the caller's transaction ends, and a rollback gives
    the numbers back: so there are no gaps, and one writer at a time. They start at 1.
    Raises ValueError (n), `InvalidDocumentId`, `CounterExhausted`, `HiLoError` for a
    missing table, and `ReservationTimeout` where another transaction keeps the counter
    for longer than ``HILO["LOCK_TIMEOUT"]``.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_AT_ONCE:
        raise ValueError(f"n must be a whole number from 1 to 2^62-1, not {n!r}.")
    collection = check_collection(collection).lower()
    last = _upsert(
        collection, using, n, f"{{last}} + {n}", f"{{last}} <= {MAX_NUMBER - n}"
    )
    if last is None:
        raise CounterExhausted(
            _(
                "The gapless numbers of %(collection)r on %(database)r have fewer than "
                "%(n)s left up to 2^63-1. If the counter was set by mistake, lower it "
                "with seed_gapless_number(..., force=True)."
            )
            % {"collection": collection, "database": using, "n": n}
        )
    return range(last - n + 1, last + 1)


def seed_gapless_number(
    collection: str,
    value: int,
    using: str = DEFAULT_DB_ALIAS,
    *,
    force: bool = False,
) -> int:
    """Let the last number of a collection be ``value`` (0 to 2^63-1), and return it.

    One that is higher stays and is returned, but for ``force`` (RavenDB's identity
    seed): then numbers that were taken come again, and rows that have them are in the
    way. Within the caller's transaction, and raises, as `next_gapless_numbers`.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidDocumentId(f"The seed must be a whole number, not {value!r}.")
    if not 0 <= value <= MAX_NUMBER:
        raise InvalidDocumentId(
            f"The seed must be from 0 to {MAX_NUMBER} (2^63-1), not {value}."
        )
    collection = check_collection(collection).lower()
    condition = "TRUE" if force else f"{{last}} < {value}"
    with transaction.atomic(using=using):
        last = _upsert(collection, using, value, str(value), condition)
        return _read(collection, using) if last is None else last


def last_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the last gapless number of a collection, 0 before the first; no lock."""
    collection = check_collection(collection).lower()
    row = GaplessCounter.objects.using(using).filter(pk=collection).first()
    return row.last if row else 0


def guard_save(
    sender: type[GaplessCounter],
    instance: GaplessCounter,
    raw: bool,
    using: str,
    **kwargs: object,
) -> None:
    """Let no fixture lower a counter (pre_save)."""
    if not raw:
        return
    instance.collection = instance.collection.lower()
    rows = GaplessCounter.objects.using(using).filter(pk=instance.collection)
    if connections[using].in_atomic_block:  # as in loaddata
        rows.update(last=F("last"))  # locks the row on every database
        rows = rows.select_for_update()  # no older row of a snapshot
    stored = rows.first()
    if stored is not None:
        instance.last = max(instance.last, stored.last)


# One statement makes the row or changes it: an UPDATE of a row that is missing would
# lock the gap, in which several first callers block each other.


def _upsert(
    collection: str, using: str, first: int, new: str, condition: str
) -> int | None:
    """Return the last number, or ``None`` where the condition kept the row.

    ``first`` is for a new row; ``new`` and ``condition`` are SQL that names the last
    number so far as ``{last}``.
    """
    connection = connections[using]
    write = _write_by_mysql if connection.vendor == "mysql" else _write
    try:
        with transaction.atomic(using=using), _waiting_briefly(connection):
            return write(connection, collection, first, new, condition)
    except Error as error:
        failure = classify(error, connection.vendor)
        if failure is Failure.LOCKED:
            raise ReservationTimeout(
                f"Another transaction keeps the gapless numbers of {collection!r} on "
                f"{using!r} for longer than {settings.LOCK_TIMEOUT:g} s "
                f"(HILO['LOCK_TIMEOUT']). Keep such transactions short."
            ) from error
        if failure is Failure.NO_TABLE:
            raise HiLoError(
                f"The table of gapless numbers is missing on {using!r}. Run: "
                f"python manage.py migrate django_hilo --database={using}"
            ) from error
        raise


def _write(
    connection: BaseDatabaseWrapper,
    collection: str,
    first: int,
    new: str,
    condition: str,
) -> int | None:
    table = connection.ops.quote_name(GaplessCounter._meta.db_table)
    last = f"{table}.last"
    statement = f"""
        INSERT INTO {table} (collection, last) VALUES (%s, %s)
        ON CONFLICT (collection) DO UPDATE SET last = {new.format(last=last)}
        WHERE {condition.format(last=last)} RETURNING last
    """  # noqa: S608 - our own names, and numbers
    with connection.cursor() as cursor:
        cursor.execute(statement, [collection, first])
        row = cursor.fetchone()
    return row[0] if row else None


def _write_by_mysql(
    connection: BaseDatabaseWrapper,
    collection: str,
    first: int,
    new: str,
    condition: str,
) -> int | None:
    table = connection.ops.quote_name(GaplessCounter._meta.db_table)
    new, condition = new.format(last="last"), condition.format(last="last")
    wait = ""
    if connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        seconds = ceil(settings.LOCK_TIMEOUT)
        wait = f"SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR "
    statement = f"""
        {wait} INSERT INTO {table} (collection, last) VALUES (%s, %s)
        ON DUPLICATE KEY UPDATE last = IF({condition}, {new}, last)
    """  # noqa: S608 - our own names, and numbers
    with connection.cursor() as cursor:
        cursor.execute(statement, [collection, first])
        changed = cursor.rowcount == _ROWS_OF_AN_UPDATE
    last = _read(collection, connection.alias)
    return last if changed or last == first else None


def _read(collection: str, using: str) -> int:
    # A plain read may see an older row than the one that was locked and kept.
    rows = GaplessCounter.objects.using(using).select_for_update()
    return rows.get(pk=collection).last


@contextmanager
def _waiting_briefly(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Bound the wait for locks on PostgreSQL; the caller's own bound comes back."""
    if connection.vendor != "postgresql":
        yield
        return
    bound = "set_config('lock_timeout', %s, true)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT current_setting('lock_timeout'), {bound}",
            [f"{ceil(settings.LOCK_TIMEOUT * 1000)}ms"],
        )
        before = cursor.fetchone()[0]
        yield
        cursor.execute(f"SELECT {bound}", [before])
