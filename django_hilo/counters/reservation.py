"""Reserve a range, return its unused end, raise the floor: the rules of a counter.

Nothing else locks or writes the row of a counter, and each change of it burns the
ticket of the newest range.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from secrets import compare_digest, token_hex
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.models import F, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hilo._database.connection import bind
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.synchronous_commit import insist
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import Range, Reservation
from django_hilo.exceptions import CounterExhausted, RangeNotReturned, TableMissing
from django_hilo.identifiers import (
    MAX_NUMBER,
    check_collection,
    check_node_tag,
    check_number,
    check_server_prefix,
)
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import range_reserved, range_returned, send

logger = logging.getLogger("django_hilo")

# Seconds: a gap is cheaper than a process that takes its time to end.
_RETRY_RETURNS_FOR = 1.0

# Gets the locked row and the server prefix of its node; returns the columns to write,
# or None to remove the row.
Change = Callable[[HiLoDocument, str], dict[str, Any] | None]


def reserve(
    collection: str,
    size: int = 1,
    *,
    node_tag: str | None = None,
    needed: int = 1,
    above: int = 0,
    issuer: str = "",
    column: KeyColumn | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> Reservation:
    """Reserve the next ``size`` numbers of a collection on the database ``using``.

    ``node_tag`` names the counter's row (``None``: the database's own tag). ``above``
    is the highest number that the caller knows: the range starts over it, even where
    Max fell back (RavenDB's ``lastMax``). Near 2^63-1 the range may be shorter than
    ``size``, but not than ``needed``. ``issuer`` marks the ticket, for `return_issued`.
    With a ``column`` the range starts over all keys that it has, and its default goes
    on over the range: SQLite's, which has both in one file.

    The range is committed when this returns, with one exception: inside a transaction
    on SQLite, and in a TestCase, it holds only if that transaction commits.

    Raises ValueError (size), `InvalidDocumentId`, `ReservationTimeout`,
    `ConcurrencyError`, `CounterExhausted`, and `HiLoError` for missing tables.
    """
    collection, node_tag = _checked(collection, node_tag, using)
    reservation = reserve_range(
        collection,
        size,
        node_tag=node_tag,
        needed=needed,
        above=above,
        issuer=issuer,
        column=column,
        using=using,
    )
    announce(reservation, using)
    return reservation


def reserve_range(
    collection: str,
    size: int,
    *,
    node_tag: str,
    needed: int,
    above: int,
    issuer: str = "",
    column: KeyColumn | None = None,
    using: str,
) -> Reservation:
    """Reserve as `reserve`, with checked names, for a caller that announces it."""
    if size < max(needed, 1):
        raise ValueError(f"size must be at least {max(needed, 1)}, not {size!r}.")
    collection = collection.lower()
    met = 0

    def take(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        nonlocal met
        check_server_prefix(prefix)
        met = document.next_low - 1
        last = max(met, above)
        if column is not None:
            last = max(last, column.highest(using))
        high = min(last + size, MAX_NUMBER)
        if high - last < needed:
            raise CounterExhausted(
                _(
                    "The counter %(counter)r on %(database)r is at %(last)s: "
                    "%(needed)s more would pass 2^63-1. Give the field another "
                    "collection, or lower Max if it was raised by mistake."
                )
                % {
                    "counter": document.id,
                    "database": using,
                    "last": last,
                    "needed": needed,
                }
            )
        if column is not None:
            column.claim(using, high)
        return {
            "max": high,
            "low": last + 1,
            "size": high - last,
            "reserved_at": timezone.now(),
            "ticket": new_ticket(issuer),
        }

    document, prefix = change_counter(collection, node_tag, using, take)
    numbers = Range(document.low, document.max)
    return Reservation(collection, node_tag, numbers, prefix, document.ticket, met)


def announce(reservation: Reservation, using: str) -> None:
    """Log a reservation, and send `range_reserved`."""
    logger.debug("Reserved on %r: %s", using, reservation)
    if range_reserved.has_listeners(HiLoDocument):
        send(range_reserved, HiLoDocument, using=using, reservation=reservation)


def return_range(
    collection: str,
    high: int,
    last: int,
    ticket: str,
    *,
    node_tag: str | None = None,
    column: KeyColumn | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Give back the numbers over ``last`` of the newest range; return the new Max.

    ``last`` is the highest number that was used (``low - 1``: none), ``ticket`` that of
    the reservation. Raises `RangeNotReturned` unless the ticket is the counter's,
    ``low - 1 <= last <= high == Max``, and ``last`` is not under the floor: RavenDB's
    rule, closed against replayed, late and forged returns. The default of a ``column``
    falls along, as it rose in `reserve`.
    """

    def is_newest(document: HiLoDocument) -> bool:
        return bool(ticket) and compare_digest(
            ticket.encode(errors="replace"), document.ticket.encode()
        )

    return _return(collection, high, last, 0, is_newest, column, node_tag, using)


def return_issued(
    collection: str,
    high: int,
    last: int,
    issuer: str,
    *,
    node_tag: str | None = None,
    column: KeyColumn | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Give back as `return_range`, for clients whose protocol knows no ticket.

    The newest range must have been reserved with this ``issuer``, and
    ``low <= last <= high == Max``: who asked for a range has used a number of it.
    """

    def is_newest(document: HiLoDocument) -> bool:
        return bool(issuer) and document.ticket.startswith(issuer)

    return _return(collection, high, last, 1, is_newest, column, node_tag, using)


def _return(
    collection: str,
    high: int,
    last: int,
    least_used: int,
    is_newest: Callable[[HiLoDocument], bool],
    column: KeyColumn | None,
    node_tag: str | None,
    using: str,
) -> int:
    collection, node_tag = _checked(collection, node_tag, using)

    def give_back(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        if high != document.max or not is_newest(document):
            raise RangeNotReturned(
                _(
                    "The range up to %(high)s is not the newest of %(counter)r on "
                    "%(database)r any more: its unused numbers stay a gap."
                )
                % {"high": high, "counter": document.id, "database": using}
            )
        lowest = max(document.low - 1 + least_used, document.floor)
        if not lowest <= last <= high:
            raise RangeNotReturned(
                _(
                    "%(last)s cannot become Max of %(counter)r on %(database)r: its "
                    "newest range is %(low)s to %(high)s, its floor %(floor)s."
                )
                % {
                    "last": last,
                    "counter": document.id,
                    "database": using,
                    "low": document.low,
                    "high": high,
                    "floor": document.floor,
                }
            )
        if column is not None:
            column.release(using, high, last)
        return {"max": last, "size": last - document.low + 1}

    if not _exists(collection, node_tag, using):
        raise RangeNotReturned(
            _("There is no counter %(counter)r on %(database)r.")
            % {"counter": HiLoDocument.key(collection, node_tag), "database": using}
        )
    change_counter(collection, node_tag, using, give_back, _RETRY_RETURNS_FOR)
    logger.debug("Returned on %r: %s to %s of %s", using, last + 1, high, collection)
    send(
        range_returned,
        HiLoDocument,
        using=using,
        collection=collection,
        node_tag=node_tag,
        last=last,
    )
    return last


def raise_floor(
    collection: str,
    number: int,
    using: str = DEFAULT_DB_ALIAS,
    *,
    node_tag: str | None = None,
) -> int:
    """Raise floor and Max to at least ``number``, and return Max; it never falls.

    For a number that an existing id has and that no range gave. Raises as `reserve`.
    """
    collection, node_tag = _checked(collection, node_tag, using)
    check_number(number)

    def lift(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        floor = max(document.floor, number)
        highest = max(document.max, floor)
        if (floor, highest) == (document.floor, document.max):
            return {}
        return {"floor": floor, "max": highest}

    document = change_counter(collection, node_tag, using, lift)[0]
    return document.max


def read_max(
    collection: str, using: str = DEFAULT_DB_ALIAS, *, node_tag: str | None = None
) -> int:
    """Return the higher of Max and floor, 0 where there is no row; takes no lock."""
    collection, node_tag = _checked(collection, node_tag, using)
    rows = _rows(collection, node_tag, using)
    return max(rows.values_list("max", "floor").first() or (0,))


def guard_save(
    sender: type[HiLoDocument],
    instance: HiLoDocument,
    raw: bool,
    using: str,
    **kwargs: object,
) -> None:
    """Burn the ticket at each save, and let no fixture lower a counter (pre_save)."""
    if raw:
        instance.collection = instance.collection.lower()
        instance.id = HiLoDocument.key(instance.collection, instance.node_tag)
        rows = _rows(instance.collection, instance.node_tag, using)
        if connections[using].in_atomic_block:  # as in loaddata
            rows.update(ticket=new_ticket())  # locks the row on every database
            bind(connections[using])
        stored = rows.first()
        if stored is not None:
            instance.max = max(instance.max, stored.max)
            instance.floor = max(instance.floor, stored.floor)
    instance.ticket = new_ticket()


def _exists(collection: str, node_tag: str, using: str) -> bool:
    def look(db: str) -> bool:
        # An error in here must not end a transaction of the caller's.
        with short_transaction(db):
            return _rows(collection, node_tag, db).exists()

    key = HiLoDocument.key(collection, node_tag)
    return retry(
        look,
        using,
        f"The row {key!r} of HiLoDocument",
        if_missing=f"The tables of django_hilo are missing on {using!r}.",
        retry_for=_RETRY_RETURNS_FOR,
    )


def _rows(collection: str, node_tag: str, using: str) -> QuerySet[HiLoDocument]:
    key = HiLoDocument.key(collection, node_tag)
    return HiLoDocument.objects.using(using).filter(pk=key)


def _checked(collection: str, node_tag: str | None, using: str) -> tuple[str, str]:
    tag = settings.node_tag(using) if node_tag is None else node_tag
    return check_collection(collection).lower(), check_node_tag(tag)


def new_ticket(issuer: str = "") -> str:
    """Return a random mark of 32 characters, which names its issuer if there is one.

    ``issuer`` has 0 to 16 letters, none of them a hexadecimal digit alone.
    """
    return f"{issuer}{token_hex(16)}"[:32]


def change_counter(
    collection: str,
    node_tag: str,
    using: str,
    change: Change,
    retry_for: float | None = None,
) -> tuple[HiLoDocument, str]:
    """Lock a counter's row, write the columns that ``change`` returns, and commit.

    Returns the row as written and its node's server prefix. A row that is missing is
    made first, with Max 0. ``retry_for`` is in seconds (``None``: the setting).
    """
    key = HiLoDocument.key(collection, node_tag)
    migrate = f"Run: python manage.py migrate django_hilo --database={using}"
    run = partial(
        retry,
        using=using,
        what=f"The row {key!r} of HiLoDocument",
        if_missing=f"The tables of django_hilo are missing on {using!r}. {migrate}",
        retry_for=retry_for,
    )
    change_locked = partial(_change_locked, key, node_tag, change, using)
    try:
        try:
            return run(change_locked)
        except HiLoDocument.DoesNotExist:
            run(partial(_make_row, key, collection, node_tag))
            return run(change_locked)
    except Error as error:
        if classify(error, connections[using]) is ErrorKind.NO_COLUMN:
            raise TableMissing(
                f"The tables of django_hilo on {using!r} are of an older version. "
                f"{migrate}"
            ) from error
        raise


def _change_locked(
    key: str, node_tag: str, change: Change, using: str, db: str
) -> tuple[HiLoDocument, str]:
    rows = HiLoDocument.objects.using(db)
    prefixes = ServerPrefix.objects.filter(node_tag=node_tag).values("prefix")
    with short_transaction(db) as connection:
        locked = rows.annotate(server_prefix=Coalesce(Subquery(prefixes), Value("")))
        if connection.features.has_select_for_update:
            locked = locked.select_for_update()
        else:
            # SQLite fails at once where a transaction reads first and writes then.
            rows.filter(pk=key).update(ticket=F("ticket"))
        document = locked.get(pk=key)
        prefix = document.server_prefix
        columns = change(document, prefix)
        if columns is None:
            rows.filter(pk=key).delete()
        elif columns:
            columns.setdefault("ticket", new_ticket())
            if columns.get("max", document.max) > document.max or "floor" in columns:
                insist(connection)
            rows.filter(pk=key).update(**columns)
            vars(document).update(columns)
    return document, prefix


def _make_row(key: str, collection: str, node_tag: str, db: str) -> None:
    row = HiLoDocument(id=key, collection=collection.lower(), node_tag=node_tag)
    # The caller may have made the row itself, in a transaction that is still open.
    with short_transaction(db):
        HiLoDocument.objects.using(db).bulk_create([row], ignore_conflicts=True)
