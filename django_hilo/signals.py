"""Signals for ranges and for changes of counters."""

from enum import StrEnum
from typing import Any

from django.db import connections
from django.dispatch import Signal

from django_hilo.exceptions import HiLoError

__all__ = [
    "Change",
    "counter_changed",
    "range_reserved",
    "range_returned",
]

_IN_ERROR = 3  # libpq's PQTRANS_INERROR, in psycopg 2 and 3


class Change(StrEnum):
    """The kinds of changes that `counter_changed` reports."""

    CREATED = "created"
    RAISED = "raised"
    LOWERED = "lowered"
    DELETED = "deleted"
    RESERVED = "reserved"
    RETURNED = "returned"
    TAKEN = "taken"
    SET = "set"


# Receivers run at once, in the thread of the change, so the caller that asked for an id
# waits for them. Django logs their errors (logger "django.dispatch"), which do not stop
# the caller, with one exception: see send_signal(). docs/how-to/observability.md has
# examples.

# Sent after a range was reserved, with
#   using: str, the alias of the database that holds the counter;
#   reservation: Reservation, the collection, node tag, range (numbers, both ends
#     included) and server prefix; its ticket is a secret.
# The range is committed, but inside a transaction on SQLite, and in a TestCase, where
# it may yet be rolled back. A transaction of the caller's may be open in any case.
# Receivers may take ids themselves.
range_reserved = Signal()

# Sent after the unused end of a range went back, with
#   using: str, as above;
#   collection: str, in lower case; node_tag: str, empty for none;
#   last: int, the highest number that was used or is kept, which Max is now.
# In the thread that returned it: mostly one named "hilo", after a request or when a
# process ends, where exporters and log handlers may be gone. Committed as above.
range_returned = Signal()

# Sent after a user changed something over the admin, REST or a seed of RavenDB's
# clients, with
#   using: str, as above;
#   user: the request's user;
#   change: Change;
#   old, new: int | None, or str for a prefix (None: there was, or is, no row).
# The sender is HiLoDocument (also collection, node_tag; Max), ServerPrefix
# (also node_tag; the prefix) or GaplessCounter (also collection; the last number, 0
# before the first). In the thread of the request, whose transaction may still be open.
# What was done to a HiLoDocument is committed, but inside a transaction on SQLite.
counter_changed = Signal()


def send_signal(signal: Signal, sender: type, **facts: Any) -> None:
    """Send a signal; errors of receivers are logged, and do not stop the caller.

    Raises `HiLoError` if a receiver's query failed inside an open transaction: the
    database would roll back the change that was just reported.
    """
    if not signal.has_listeners(sender):
        return
    doomed_before = _doomed()
    signal.send_robust(sender, **facts)
    doomed = ", ".join(map(repr, sorted(_doomed() - doomed_before)))
    if doomed:
        raise HiLoError(
            f"A signal receiver failed with a database error, so the transaction on "
            f"{doomed} must be rolled back. In the receiver, use transaction.atomic() "
            f"or transaction.on_commit()."
        )


def send_counter_changed(
    row: Any,
    using: str,
    change: Change,
    old: int | str | None,
    new: int | str | None,
    user: Any,
) -> None:
    """Send `counter_changed` for a row on ``using``, with the columns of its key."""
    columns = ("collection", "node_tag")
    key = {name: getattr(row, name) for name in columns if hasattr(row, name)}
    facts = {"user": user, "change": change, "old": old, "new": new}
    send_signal(counter_changed, type(row), using=using, **key, **facts)


def _doomed() -> set[str]:
    """Return the aliases whose open transactions can only roll back; no query."""
    return {
        connection.alias
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
        and (connection.needs_rollback or _is_in_error(connection.connection))
    }


def _is_in_error(driver: Any) -> bool:
    # PostgreSQL's transactions fail as a whole, also if Django did not notice.
    info = getattr(driver, "info", None)
    return getattr(info, "transaction_status", None) == _IN_ERROR
