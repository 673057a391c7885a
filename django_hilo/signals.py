from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import Signal

from django_hilo.exceptions import HiLoError

_IN_ERROR = 3  # libpq's PQTRANS_INERROR, in psycopg 2 and 3


class Change(StrEnum):
    """What was done, as `counter_changed` tells it."""

    CREATED = "created"
    RAISED = "raised"
    LOWERED = "lowered"
    DELETED = "deleted"
    RESERVED = "reserved"
    RETURNED = "returned"
    TAKEN = "taken"
    SET = "set"


# Sent after a range was reserved, with using and reservation (a Reservation). Receivers
# run while the caller of save() waits; they may take ids themselves. Their errors are
# logged by Django and stop nobody from saving.
range_reserved = Signal()

# Sent after the unused end of a range went back, with using, collection, node_tag and
# last (what Max is now).
range_returned = Signal()

# Sent after a user changed something over the admin, REST or a seed of RavenDB's
# clients, with user, using, change (a `Change`), old and new (None: there was, or is,
# no row). The sender tells what: HiLoDocument (also collection, node_tag; Max),
# ServerPrefix (also node_tag; the prefix) or GaplessCounter (also collection; the last
# number, 0 before the first). A transaction around the request may still be open.
counter_changed = Signal()


def tell(signal: Signal, sender: type, **facts: Any) -> None:
    """Send a signal to receivers whose errors are logged and stop nobody.

    Raises `HiLoError` where a query of theirs that failed has doomed a transaction that
    is open around it: it would silently undo what they were told of.
    """
    if not signal.has_listeners(sender):
        return
    sound = [c for c in connections.all(initialized_only=True) if not _is_doomed(c)]
    signal.send_robust(sender, **facts)
    doomed = ", ".join(repr(c.alias) for c in sound if _is_doomed(c))
    if doomed:
        raise HiLoError(
            f"A receiver of a signal of django_hilo failed with an error of the "
            f"database, and so doomed the transaction on {doomed}. Let it use "
            f"transaction.atomic() or transaction.on_commit()."
        )


def _is_doomed(connection: BaseDatabaseWrapper) -> bool:
    """Whether an open transaction can only roll back; no query, as a COPY may run."""
    if not connection.in_atomic_block:
        return False
    # PostgreSQL's transactions fail as a whole, also where Django did not see it.
    info = getattr(connection.connection, "info", None)
    in_error = getattr(info, "transaction_status", None) == _IN_ERROR
    return bool(connection.needs_rollback) or in_error
