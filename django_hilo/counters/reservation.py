"""Locking and writing a counter's row.

Reserving a range, returning its unused end (`returning`) and raising the `floor` are
each one short transaction: lock the row with ``select_for_update()``, then update it.
Every update replaces the ticket, so a return with an older ticket is refused.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.models import F
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.own_connection import clock
from django_hilo._database.retry import retry, short_transaction
from django_hilo._late_rows import write_late_rows
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.exceptions import CounterExhausted
from django_hilo.identifiers import (
    MAX_NUMBER,
    check_counter_name,
    check_node_tag,
    check_server_prefix,
    counter_key,
)
from django_hilo.signals import range_reserved, send_signal

# Functions import it when they run: fields, and this with them, need no loaded apps.
if TYPE_CHECKING:
    from django_hilo.models import HiLoDocument

logger = logging.getLogger("django_hilo")

_NAME = "The row %r of HiLoDocument"  # in messages

# Gets the locked row, with ``waited``, the seconds that it took to lock it, and the
# server prefix of its node. Returns the columns to write, or None to delete the row.
Change = Callable[["HiLoDocument", str], dict[str, Any] | None]


def reserve(
    collection: str,
    size: int = 1,
    *,
    node_tag: str | None = None,
    at_least: int = 1,
    minimum: int = 0,
    issuer: str = "",
    column: KeyColumn | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> Reservation:
    """Reserve the next ``size`` numbers of a collection on the database ``using``.

    - ``node_tag``: the node tag of the counter's row; None: that of the database.
    - ``at_least``: how many numbers to accept near 2^63-1, where ``size`` may not fit.
    - ``minimum``: the highest number that the caller knows. The range starts over it,
      never at it, even if Max fell back (RavenDB's ``lastMax``).
    - ``issuer``: the start of the ticket, for `return_range`.
    - ``column``: an integer key in the same database. The range starts over its
      highest key, and the column's own default continues after the range (SQLite).

    The range is committed when this returns, unless it is bound to the caller's
    transaction (`_database.which_connection`): then it is valid only if that commits.

    Raises ValueError (size), `InvalidDocumentId`, `ReservationTimeout`,
    `ConcurrencyError`, `CounterExhausted`, and `HiLoError` for missing tables.
    """
    tag = checked(collection, node_tag, using)[1]
    wanted = Wanted(size, at_least, minimum, issuer=issuer)
    reservation = reserve_range(collection, tag, wanted, using, column)
    send_reserved(reservation, using)
    return reservation


def reserve_range(
    collection: str,
    node_tag: str,
    wanted: Wanted,
    using: str,
    column: KeyColumn | None = None,
) -> Reservation:
    """Reserve as `reserve`, with checked names; the caller calls `send_reserved`."""
    size, at_least, minimum = wanted[:3]
    if size < max(at_least, 1):
        raise ValueError(f"size must be at least {max(at_least, 1)}, not {size!r}.")
    collection, met = collection.lower(), 0

    def next_range(document: "HiLoDocument", prefix: str) -> dict[str, Any]:
        nonlocal met
        check_server_prefix(prefix)
        met = max(document.max, document.floor)
        if column is not None:
            met = max(met, column.highest(using))
        last = max(met, minimum)
        most = max(size, wanted.capacity.after(document.waited))
        high = min(last + most, MAX_NUMBER)
        if high - last < at_least:
            known = {"counter": document.id, "database": using, "last": last}
            raise CounterExhausted(
                _(
                    "The counter %(counter)r on %(database)r is at %(last)s: "
                    "%(at_least)s more would exceed 2^63-1. Give the field another "
                    "collection, or lower Max if it was raised by mistake."
                )
                % {**known, "at_least": at_least}
            )
        if column is not None:
            column.raise_default(using, high)
        return {
            "max": high,
            "low": last + 1,
            "size": high - last,
            "reserved_at": timezone.now(),
            "ticket": new_ticket(wanted.issuer),
        }

    document, prefix = change_counter(collection, node_tag, using, next_range)
    numbers, ticket = Range(document.low, document.max), document.ticket
    names, waited = (collection, node_tag), document.waited
    return Reservation(*names, numbers, prefix, ticket, met, waited)


def send_reserved(reservation: Reservation, using: str) -> None:
    """Log and send that a range was reserved."""
    logger.debug("Reserved on %r: %s", using, reservation)
    if not range_reserved.receivers:
        return  # a sequence of PostgreSQL's may be used without the app
    from django_hilo.models import HiLoDocument

    if range_reserved.has_listeners(HiLoDocument):
        send_signal(range_reserved, HiLoDocument, using=using, reservation=reservation)


def checked(collection: str, node_tag: str | None, using: str) -> tuple[str, str]:
    """Return the names of a counter's row; raises `InvalidDocumentId`."""
    tag = settings.node_tag(using) if node_tag is None else node_tag
    return check_counter_name(collection).lower(), check_node_tag(tag)


def new_ticket(issuer: str = "") -> str:
    """Return a random mark of 32 characters that starts with ``issuer``.

    An issuer has up to 16 letters, and is not a hexadecimal number.
    """
    return f"{issuer}{token_hex(16)}"[:32]


def change_counter(
    collection: str, node_tag: str, using: str, change: Change
) -> tuple["HiLoDocument", str]:
    """Change a counter as `change_existing`; a missing row is created with Max 0."""
    key = counter_key(collection, node_tag)
    with suppress(ObjectDoesNotExist):
        return change_existing(key, node_tag, using, change)
    row = {"id": key, "collection": collection.lower(), "node_tag": node_tag}
    retry(partial(_create, row), using, _NAME % key)
    return change_existing(key, node_tag, using, change)


def change_existing(
    key: str,
    node_tag: str,
    using: str,
    change: Change,
    retry_for: float | None = None,
) -> tuple["HiLoDocument", str]:
    """Lock a counter's row, write the columns that ``change`` returns, and commit.

    Returns the row as written and its node's server prefix. Raises ObjectDoesNotExist.
    """
    operate = _LockedChange(key, node_tag, change)
    return retry(operate, using, _NAME % key, retry_for=retry_for)


class _LockedChange:
    """A change of a counter's row, which is tried until it is committed."""

    def __init__(self, key: str, node_tag: str, change: Change) -> None:
        self.key, self.node_tag, self.change = key, node_tag, change
        # The seconds of the tries that lost against other processes.
        self.lost = 0.0

    def __call__(self, db: str) -> tuple["HiLoDocument", str]:
        write_late_rows()  # once, not for each statement, as its manager does
        began = inf  # until it is connected
        try:
            with short_transaction(db, locks_row=True):
                began = clock()
                return self._change(db, began)
        except Error as error:
            if classify(error, connections[db]) is ErrorKind.RETRY:
                self.lost += max(clock() - began, 0)
            raise

    def _change(self, db: str, began: float) -> tuple["HiLoDocument", str]:
        from django_hilo.models import HiLoDocument

        rows = HiLoDocument._base_manager.using(db).filter(pk=self.key)
        locks_rows = connections[db].features.has_select_for_update
        if not locks_rows:
            # SQLite fails at once if a transaction reads first and writes later.
            rows.update(ticket=F("ticket"))
        document = _with_prefix(rows, self.node_tag).select_for_update().get()
        if locks_rows:
            # Of one writer at a time nobody knows whether it uses the counter.
            document.waited = self.lost + clock() - began
        prefix = document.prefix or ""
        columns = self.change(document, prefix)
        if columns is None:
            rows.delete()
        elif columns:
            if "ticket" not in columns:
                columns["ticket"] = new_ticket()
            rows.update(**columns)
            vars(document).update(columns)
        return document, prefix


def _with_prefix(rows: Any, node_tag: str) -> Any:
    """Return rows with the attribute ``prefix``, None if the node has none."""
    from django_hilo.models import ServerPrefix

    # Not a Subquery, which Django takes longer to compile than all else takes here.
    sql = f"SELECT prefix FROM {ServerPrefix._meta.db_table} WHERE node_tag = %s"  # noqa: S608 - our own table
    return rows.annotate(prefix=RawSQL(sql, [node_tag]))  # noqa: S611


def _create(row: dict[str, str], db: str) -> None:
    from django_hilo.models import HiLoDocument

    # Another process may create it first. An error must not end a caller's transaction.
    with short_transaction(db, locks_row=True):
        HiLoDocument._base_manager.using(db).bulk_create(
            [HiLoDocument(**row)], ignore_conflicts=True
        )
