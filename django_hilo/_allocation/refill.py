"""Ranges that are fetched when memory has too few numbers.

One thread reserves a range of a counter while the others wait for it; the memory is not
locked meanwhile, and a `HiLoError` is shared. Inside a transaction, and always on MySQL
and MariaDB, the range is reserved on the process's own connection
(`_database.which_connection`), where reservations of several counters queue, too. Bound
ranges don't come this way: each transaction reserves its own
(`in_transaction.take_anew`), and only the database makes it wait.
"""

import threading
from contextlib import suppress

from django.db import Error, connections

from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.memory import Refill
from django_hilo._database.dialects import dialect_of
from django_hilo._database.own_connection import POOL_SIZE
from django_hilo.conf import settings
from django_hilo.counters.reservation import send_reserved
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout


def refill(counter: Counter, count: int) -> list[Slice] | None:
    """Reserve a range and take from it.

    None if memory has to be asked again: after waiting for another thread, or where an
    explicit id dropped the range; and for a ``count`` of 0.
    """
    connection, held = connections[counter.using], counter.memory
    if connection.settings_dict["OPTIONS"].get("pool"):
        # Before others wait for us: a thread that waits inside a transaction may hold
        # the last connection of Django's pool.
        with suppress(Error):  # the reservation raises it, and tries again
            connection.ensure_connection()
    # Another thread that waits for us may have locked the table.
    is_known = held.source is not None
    highest_row = 0 if is_known else counter.source.minimum_of_rows(counter.using)
    mine = Refill()
    try:
        others = held.begin_refill(mine)
        if others is None:
            return _refill_as(mine, counter, count, highest_row)
    finally:
        # A signal handler may raise anywhere, even in the first call.
        if not mine.is_over:
            held.end_refill(mine)
    _wait(counter, others)
    return None


def _refill_as(
    mine: Refill, counter: Counter, count: int, highest_row: int
) -> list[Slice] | None:
    """Reserve a range and take from it; other threads wait, and take from it too."""
    held = counter.memory
    try:
        capacity = held.capacity.of_range(*counter.capacities)
        reserved = counter.fetch(capacity, count, highest_row)
        slices = held.add(reserved.ranges, reserved.capacity, count, reserved.skipped)
    except BaseException as error:
        held.end_refill(mine, error)
        raise
    held.end_refill(mine)
    for each in reserved.reservations:
        send_reserved(each, counter.using)
    return slices


def _wait(counter: Counter, refill: Refill) -> None:
    if refill.owner == threading.get_ident():
        work = f"reserving a range of {counter.name!r} on {counter.using!r}"
        raise NestedReservation.amid(work)
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    if not refill.wait(longest):
        has_server = not dialect_of(connections[counter.using]).has_one_writer
        pool = f" {POOL_SIZE}" if has_server else ""
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {counter.name!r} on "
            f"{counter.using!r} for {longest:g} s. Check what its database waits "
            f"for.{pool}"
        )
    if isinstance(refill.error, HiLoError):
        # Raise it here too, so that waiting threads do not each wait for the same lock.
        raise type(refill.error)(str(refill.error)) from refill.error
