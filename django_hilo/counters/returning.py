"""Return the unused end of the newest range, if its ticket is still the counter's."""

import logging
from secrets import compare_digest
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _

from django_hilo.counters import reservation
from django_hilo.counters.key_column import KeyColumn
from django_hilo.exceptions import RangeNotReturned
from django_hilo.identifiers import counter_key
from django_hilo.signals import range_returned, send_signal

# Functions import it when they run: fields, and this with them, need no loaded apps.
if TYPE_CHECKING:
    from django_hilo.models import HiLoDocument

logger = logging.getLogger("django_hilo")


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
    collection, node_tag = reservation.checked(collection, node_tag, using)
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
            column.lower_default(using, high, last)
        return {"max": last, "size": last - document.low + 1}

    try:
        # A second: a gap is better than a process that is slow to end.
        reservation.change_existing(key, node_tag, using, give_back, retry_for=1)
    except ObjectDoesNotExist as error:
        raise RangeNotReturned(
            _("There is no counter %(counter)r on %(database)r.") % known
        ) from error
    from django_hilo.models import HiLoDocument

    logger.debug("Returned on %r: %s to %s of %s", using, last + 1, high, collection)
    facts = {"using": using, "collection": collection, "node_tag": node_tag}
    send_signal(range_returned, HiLoDocument, **facts, last=last)
    return last
