"""Reserve a range, return its unused end, raise the floor: the rules of a counter."""

from __future__ import annotations

import logging
from collections.abc import Callable
from secrets import compare_digest
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hilo.attempts import attempt, short_transaction
from django_hilo.columns import KeyColumn
from django_hilo.conf import settings
from django_hilo.connections import bind
from django_hilo.counter import change_counter, new_ticket, no_direct_way
from django_hilo.direct import note_prefix, raise_max
from django_hilo.exceptions import CounterExhausted, RangeNotReturned
from django_hilo.identifiers import (
    MAX_NUMBER,
    check_collection,
    check_node_tag,
    check_number,
    check_server_prefix,
)
from django_hilo.models import HiLoDocument
from django_hilo.ranges import Range, Reservation
from django_hilo.signals import range_reserved, range_returned, tell

logger = logging.getLogger("django_hilo")

# Seconds: a gap is cheaper than a process that takes its time to end.
_RETRY_RETURNS_FOR = 1.0


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
    return announce(
        reserve_range(
            collection,
            size,
            node_tag=node_tag,
            needed=needed,
            above=above,
            issuer=issuer,
            column=column,
            using=using,
        ),
        using,
    )


def reserve_range(
    collection: str,
    size: int,
    *,
    node_tag: str | None,
    needed: int,
    above: int,
    issuer: str = "",
    column: KeyColumn | None = None,
    using: str,
) -> Reservation:
    """Reserve as `reserve`, for a caller that announces the range when it holds it."""
    if size < max(needed, 1):
        raise ValueError(f"size must be at least {max(needed, 1)}, not {size!r}.")
    collection, node_tag = _checked(collection, node_tag, using)

    def take(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        check_server_prefix(prefix)
        last = max(document.max, document.floor, above)
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

    def take_at_once(db: str) -> tuple[HiLoDocument, str] | None:
        return raise_max(db, collection, node_tag, size, above, new_ticket(issuer))

    document, prefix = change_counter(
        collection,
        node_tag,
        using,
        take,
        direct=take_at_once if column is None else no_direct_way,
    )
    note_prefix(using, node_tag, prefix)
    numbers = Range(document.low, document.max)
    return Reservation(collection, node_tag, numbers, prefix, document.ticket)


def announce(reservation: Reservation, using: str) -> Reservation:
    """Log a reservation, send `range_reserved`, and return it."""
    logger.debug("Reserved on %r: %s", using, reservation)
    tell(range_reserved, HiLoDocument, using=using, reservation=reservation)
    return reservation


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
    tell(
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


def acknowledge_server(
    collection: str, using: str = DEFAULT_DB_ALIAS, *, node_tag: str | None = None
) -> None:
    """Note on a counter that its server is the right one, after a failover."""
    collection, node_tag = _checked(collection, node_tag, using)
    change_counter(
        collection,
        node_tag,
        using,
        # change_counter() annotates the row that it gives.
        lambda document, prefix: {"raised_by": document.server},  # type: ignore[attr-defined]
    )


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
        # What the fixture says is of the server that it was dumped from.
        instance.raised_by = stored.raised_by if stored else ""
    instance.ticket = new_ticket()


def _exists(collection: str, node_tag: str, using: str) -> bool:
    def look(db: str) -> bool:
        # An error in here must not end a transaction of the caller's.
        with short_transaction(db):
            return _rows(collection, node_tag, db).exists()

    key = HiLoDocument.key(collection, node_tag)
    return attempt(
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
