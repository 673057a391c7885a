"""Gapless numbers: one by one, in the caller's transaction (RavenDB's identities)."""

from collections.abc import Callable, Iterable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from django_hilo._database.dialects import dialect_of
from django_hilo._database.identity import DatabaseKey, database_key
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.which_connection import in_callers_transaction
from django_hilo.exceptions import CounterExhausted
from django_hilo.identifiers import MAX_NUMBER, check_counter_name, check_number


def next_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the next gapless number of a collection, as `next_gapless_numbers`."""
    return next_gapless_numbers(collection, 1, using)[0]


def next_gapless_numbers(
    collection: str, n: int, using: str = DEFAULT_DB_ALIAS
) -> range:
    """Return the next ``n`` (1 to 2^62-1) gapless numbers of a collection on ``using``.

    Numbers start at 1. The counter stays locked until the caller's transaction ends,
    and a rollback gives the numbers back: there are no gaps, and writers wait for one
    another. Raises ValueError (n), `InvalidDocumentId`, `CounterExhausted`, `HiLoError`
    for a missing table or in the middle of a statement, `ReservationTimeout` if another
    transaction locks the counter for longer than ``HILO["LOCK_TIMEOUT"]``, and
    `ConcurrencyError` after a deadlock or a lost connection.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_NUMBER // 2:
        raise ValueError(f"n must be an integer from 1 to 2^62-1, not {n!r}.")
    last = _add(collection, n, using)
    return range(last - n + 1, last + 1)


def _add(collection: str, n: int, using: str, *, savepoint: bool = True) -> int:
    collection = check_counter_name(collection).lower()
    return _change(
        collection,
        using,
        lambda last: _next_last(collection, last, n, using),
        savepoint=savepoint,
    )


def _next_last(collection: str, last: int, n: int, using: str) -> int:
    if last > MAX_NUMBER - n:
        raise CounterExhausted(
            _(
                "The gapless counter %(collection)r on %(database)r ends at 2^63-1, "
                "too soon for %(n)s more. If it was raised by mistake, lower it with "
                "seed_gapless_number(..., force=True)."
            )
            % {"collection": collection, "database": using, "n": n}
        )
    return last + n


def next_of_each(counts: dict[str, int], using: str) -> dict[str, range]:
    """Return the next numbers of several counters, by their names: how many of each.

    As `next_gapless_numbers`, with a few statements for all, which are locked in one
    order: processes that need the same ones wait for each other, and do not deadlock.
    The caller is in a transaction or savepoint that an error rolls back.
    """
    from django_hilo.models import GaplessCounter

    def operate(db: str) -> dict[str, int]:
        connection, rows = connections[db], GaplessCounter.objects.using(db)
        with dialect_of(connection).bounded_wait(connection):
            found = list(rows.select_for_update().filter(pk__in=counts).order_by("pk"))
        for row in found:
            row.last = _next_last(row.pk, row.last, counts[row.pk], using)
        rows.bulk_update(found, ["last"])
        return {row.pk: row.last for row in found}

    last: dict[str, int] = {}
    if len(counts) > 1:
        what = f"One of {len(counts)} gapless counters"
        last = retry(operate, using, what, bound=True)
    # Some are missing, or there is only one.
    for name in sorted(counts.keys() - last.keys()):
        last[name] = _add(name, counts[name], using, savepoint=False)
    ends = {name: last[name] + 1 for name in counts}
    return {name: range(ends[name] - n, ends[name]) for name, n in counts.items()}


# Those that exist, as far as this process knows.
_made: dict[DatabaseKey, set[str]] = {}
_MOST_MADE = 10_000


def make_counters(names: Iterable[str], using: str) -> None:
    """Make and commit those of the counters that are missing.

    Where the transaction that uses them made them, its rollback could end in a deadlock
    of others that wait to make them (MariaDB and MySQL).
    """
    from django_hilo.models import GaplessCounter

    def operate(db: str) -> None:
        with short_transaction(db, locks_row=True):
            rows = [GaplessCounter(collection=name, last=0) for name in missing]
            GaplessCounter.objects.using(db).bulk_create(rows, ignore_conflicts=True)

    made = _made.setdefault(database_key(using), set())
    if len(made) > _MOST_MADE:
        made.clear()
    is_bound = in_callers_transaction(using)
    missing = sorted(names if is_bound else set(names) - made)
    if is_bound and len(missing) == 1:
        return  # taking its number makes it
    if missing and not is_bound:
        counters = GaplessCounter.objects.using(using).filter(pk__in=missing)
        known = set(counters.values_list("pk", flat=True))
        missing = [name for name in missing if name not in known]
    # SQLite fails at once if a transaction reads first and writes later.
    if missing:
        retry(operate, using, "The gapless counters", bound=is_bound)
    if not is_bound:
        made.update(names)


def seed_gapless_number(
    collection: str, value: int, using: str = DEFAULT_DB_ALIAS, *, force: bool = False
) -> int:
    """Set the last number of a collection to ``value`` (0 to 2^63-1), and return it.

    A higher last number is kept and returned, unless ``force`` is True (RavenDB's
    identity seed): numbers are then repeated, and rows that have them already are in
    the way. Works in the caller's transaction, and raises, as `next_gapless_numbers`.
    """
    check_number(value, 0, "The seed")
    collection = check_counter_name(collection).lower()
    return _change(collection, using, lambda last: value if force else max(last, value))


def last_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the last gapless number of a collection, 0 before the first; no lock."""
    from django_hilo.models import GaplessCounter

    collection = check_counter_name(collection).lower()
    row = GaplessCounter.objects.using(using).filter(pk=collection).first()
    return row.last if row else 0


def guard_save(instance: Any, raw: bool, using: str, **kwargs: object) -> None:
    """Keep a fixture from lowering a counter (pre_save)."""
    if not raw:
        return
    instance.collection = instance.collection.lower()
    rows = type(instance).objects.using(using).filter(pk=instance.collection)
    if connections[using].in_atomic_block:  # as in loaddata
        rows.update(last=F("last"))  # locks the row on every database
        rows = rows.select_for_update()  # no older row of a snapshot
    stored = rows.first()
    if stored is not None:
        instance.last = max(instance.last, stored.last)


def _change(
    collection: str,
    using: str,
    change: Callable[[int], int],
    *,
    savepoint: bool = True,
) -> int:
    """Change the last number of a collection, and return it.

    The row is locked until the caller's transaction ends.
    """
    from django_hilo.models import GaplessCounter

    def operate(db: str) -> int:
        connection, row = connections[db], GaplessCounter(collection=collection, last=0)
        with transaction.atomic(using=db, savepoint=savepoint):
            dialect = dialect_of(connection)  # an open one: MySQL or MariaDB
            with dialect.bounded_wait(connection):
                before = dialect.locked(connection, row).last
            last = change(before)
            if last != before:
                rows = GaplessCounter.objects.using(db).filter(pk=collection)
                rows.update(last=last)
        return last

    return retry(operate, using, f"The gapless counter {collection!r}", bound=True)
