"""The only code that locks and writes a counter's row.

Reserving a range, returning its unused end and raising the floor are each one short
transaction: lock the row with ``select_for_update()``, then update it. Every update
replaces the ticket, so a return with an older ticket is refused.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from secrets import compare_digest, token_hex
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hilo._database.dialects import dialect_of
from django_hilo._database.retry import retry, short_transaction
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import Range, Reservation, Wanted
from django_hilo.counters.server_prefix import with_prefix
from django_hilo.exceptions import CounterExhausted, RangeNotReturned
from django_hilo.identifiers import (
    MAX_NUMBER,
    check_collection,
    check_node_tag,
    check_server_prefix,
    counter_key,
)
from django_hilo.signals import (
    counter_fell_back,
    range_reserved,
    range_returned,
    send_signal,
)

# Functions import it when they run: fields, and this with them, need no loaded apps.
if TYPE_CHECKING:
    from django_hilo.models import HiLoDocument

logger = logging.getLogger("django_hilo")

_NAME = "The row %r of HiLoDocument"  # in messages

# Gets the locked row and the server prefix of its node. Returns the columns to write,
# or None to delete the row.
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

    The range is committed when this returns, with one exception: inside a transaction
    on SQLite, and in a TestCase, it is valid only if that transaction commits.

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

    def take(document: "HiLoDocument", prefix: str) -> dict[str, Any]:
        nonlocal met
        check_server_prefix(prefix)
        met = max(document.max, document.floor)
        if column is not None:
            met = max(met, column.highest(using))
        last = max(met, minimum)
        high = min(last + size, MAX_NUMBER)
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
            connection = connections[using]
            dialect_of(connection).raise_default(connection, column.table, high)
        return {
            "max": high,
            "low": last + 1,
            "size": high - last,
            "reserved_at": timezone.now(),
            "ticket": new_ticket(wanted.issuer),
        }

    bound = wanted.bound
    document, prefix = change_counter(collection, node_tag, using, take, bound=bound)
    numbers = Range(document.low, document.max)
    return Reservation(collection, node_tag, numbers, prefix, document.ticket, met)


def send_reserved(reservation: Reservation, using: str, fell_from: int = 0) -> None:
    """Log and send that a range was reserved, and what the counter fell back from."""
    from django_hilo.models import HiLoDocument

    if fell_from:
        collection, node_tag = reservation.collection, reservation.node_tag
        logger.warning(
            "HiLoDocument %r on %r fell back to %d from at least %d, because of a "
            "restore, a failover, SQL, or another site with its node tag. This process "
            "continues above the numbers that it knows; others may not. Run: python "
            "manage.py hilo_raise_max --database=%s",
            *(counter_key(collection, node_tag), using),
            *(reservation.met, fell_from, using),
        )
        facts = {"using": using, "collection": collection, "node_tag": node_tag}
        numbers = {"max": reservation.met, "known": fell_from}
        send_signal(counter_fell_back, HiLoDocument, **facts, **numbers)
    logger.debug("Reserved on %r: %s", using, reservation)
    if range_reserved.has_listeners(HiLoDocument):
        send_signal(range_reserved, HiLoDocument, using=using, reservation=reservation)


def return_range(
    collection: str,
    high: int,
    last: int,
    ticket: str = "",
    *,
    issuer: str = "",
    node_tag: str | None = None,
    column: KeyColumn | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Return the numbers over ``last`` of the newest range; return the new Max.

    - ``high``: the end of the range, which must still be Max.
    - ``last``: the highest number to keep, ``low - 1`` if none; not under the floor.
    - ``ticket``: the ticket of the reservation, which must still be the counter's.
    - ``issuer``: instead of a ticket, for clients whose protocol has none: the start of
      the counter's ticket. ``last`` must then be at least ``low``, since such a client
      uses a number of each range that it asks for.
    - ``column``: the column of the reservation, whose default is lowered too.

    Otherwise raises `RangeNotReturned`: so replayed, late and forged returns are
    refused, unlike by RavenDB.
    """
    collection, node_tag = checked(collection, node_tag, using)
    key = counter_key(collection, node_tag)
    known: dict[str, Any] = {"counter": key, "database": using, "high": high}

    def give_back(document: "HiLoDocument", prefix: str) -> dict[str, Any]:
        stored, given = document.ticket, ticket.encode(errors="replace")
        is_same = given and compare_digest(given, stored.encode())
        is_mark = stored.startswith(issuer) if issuer else is_same
        if high != document.max or not is_mark:
            raise RangeNotReturned(
                _(
                    "The range up to %(high)s is no longer the newest of %(counter)r "
                    "on %(database)r; its unused numbers stay a gap."
                )
                % known
            )
        lowest = max(document.low - (not issuer), document.floor)
        if not lowest <= last <= high:
            raise RangeNotReturned(
                _(
                    "Max of %(counter)r on %(database)r cannot become %(last)s: the "
                    "newest range is %(low)s to %(high)s, and the floor is %(floor)s."
                )
                % {**known, "last": last, "low": document.low, "floor": document.floor}
            )
        if column is not None:
            connection = connections[using]
            dialect_of(connection).lower_default(connection, column.table, high, last)
        return {"max": last, "size": last - document.low + 1}

    try:
        # A second: a gap is better than a process that is slow to end.
        operate = partial(_change_locked, key, node_tag, give_back)
        retry(operate, using, _NAME % key, retry_for=1)
    except ObjectDoesNotExist as error:
        raise RangeNotReturned(
            _("There is no counter %(counter)r on %(database)r.") % known
        ) from error
    from django_hilo.models import HiLoDocument

    logger.debug("Returned on %r: %s to %s of %s", using, last + 1, high, collection)
    facts = {"using": using, "collection": collection, "node_tag": node_tag}
    send_signal(range_returned, HiLoDocument, **facts, last=last)
    return last


def checked(collection: str, node_tag: str | None, using: str) -> tuple[str, str]:
    """Return the names of a counter's row; raises `InvalidDocumentId`."""
    tag = settings.node_tag(using) if node_tag is None else node_tag
    return check_collection(collection).lower(), check_node_tag(tag)


def new_ticket(issuer: str = "") -> str:
    """Return a random mark of 32 characters that starts with ``issuer``.

    An issuer has up to 16 letters, and is not a hexadecimal number.
    """
    return f"{issuer}{token_hex(16)}"[:32]


def change_counter(
    collection: str,
    node_tag: str,
    using: str,
    change: Change,
    bound: bool | None = None,
) -> tuple["HiLoDocument", str]:
    """Lock a counter's row, write the columns that ``change`` returns, and commit.

    Returns the row as written and its node's server prefix. A missing row is created
    first, with Max 0. ``bound`` is that of `retry`.
    """
    key = counter_key(collection, node_tag)
    operate = partial(_change_locked, key, node_tag, change)
    with suppress(ObjectDoesNotExist):
        return retry(operate, using, _NAME % key, bound=bound)
    row = {"id": key, "collection": collection.lower(), "node_tag": node_tag}
    retry(partial(_create, row), using, _NAME % key, bound=bound)
    return retry(operate, using, _NAME % key, bound=bound)


def _change_locked(
    key: str, node_tag: str, change: Change, db: str
) -> tuple["HiLoDocument", str]:
    from django_hilo.models import HiLoDocument

    rows = HiLoDocument.objects.using(db).filter(pk=key)
    with short_transaction(db) as connection:
        if not connection.features.has_select_for_update:
            # SQLite fails at once if a transaction reads first and writes later.
            rows.update(ticket=F("ticket"))
        document = with_prefix(rows, node_tag).select_for_update().get()
        prefix = document.prefix or ""
        columns = change(document, prefix)
        if columns is None:
            rows.delete()
        elif columns:
            if "ticket" not in columns:
                columns["ticket"] = new_ticket()
            rows.update(**columns)
            vars(document).update(columns)
    return document, prefix


def _create(row: dict[str, str], db: str) -> None:
    from django_hilo.models import HiLoDocument

    # Another process may create it first. An error must not end a caller's transaction.
    with short_transaction(db):
        HiLoDocument.objects.using(db).bulk_create(
            [HiLoDocument(**row)], ignore_conflicts=True
        )
