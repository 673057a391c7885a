"""Reserve a new range for a counter, or wait for the thread that is doing so.

No lock is held meanwhile, and errors are shared. With ``HILO["PREFETCH_AT"]`` a thread
in the background reserves the next range before the numbers are used up.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from queue import SimpleQueue

from django.db import Error, connections

from django_hilo._allocation.cache import Slice
from django_hilo._allocation.capacity import Ahead
from django_hilo._allocation.pool import Counter, Refill
from django_hilo._allocation.target import Target
from django_hilo._allocation.transaction import TransactionState
from django_hilo._database.connection import (
    database_key,
    has_schemas,
    in_tests,
    use_own,
)
from django_hilo._database.dialects import dialect_of
from django_hilo.conf import settings
from django_hilo.counters import reservation
from django_hilo.counters.ranges import Reservation
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout

logger = logging.getLogger("django_hilo")

Job = tuple[Refill, Target, Counter]


def refill(target: Target, counter: Counter, count: int) -> list[Slice] | None:
    """Reserve a range and take from it; None after waiting for another thread."""
    connection = connections[target.using]
    if connection.settings_dict["OPTIONS"].get("pool"):
        # Before others wait for us: a thread that waits inside a transaction may hold
        # the last connection of Django's pool.
        with suppress(Error):  # the reservation raises it, and tries again
            connection.ensure_connection()
    mine = Refill()
    try:
        others = counter.begin_refill(mine)
        if others is None:
            return _refill_as(mine, target, counter, count)
    finally:
        # Also if a signal handler raises anywhere.
        if not mine.done():
            counter.end_refill(mine)
    _wait(target, others)
    return None


def allocate_bound(target: Target, counter: Counter, count: int) -> list[Slice]:
    """Take numbers of ranges that belong to the caller's transaction."""
    state = TransactionState.of(connections[target.using])
    slices = state.take(counter, count)
    while slices is None:
        capacity = state.next_capacity(counter, *target.capacities, count)
        reserved = _reserve(target, counter, max(capacity, count), count, bound=True)
        slices = state.add(counter, reserved, capacity, count)
        for each in reserved:
            reservation.announce(each, target.using)
    return slices


def _refill_as(
    mine: Refill, target: Target, counter: Counter, count: int
) -> list[Slice] | None:
    """Reserve a range and take from it, while other threads wait.

    A ``count`` of 0 leaves all of it to them.
    """
    mine.owner = threading.get_ident()
    began = time.monotonic()
    try:
        least, most = target.capacities
        capacity = counter.capacity.next(least, least, most)
        size, at_least = max(capacity, count), max(count, 1)
        reserved = _reserve(target, counter, size, at_least, bound=False)
        ahead = _fetched_ahead(target, time.monotonic() - began)
        slices = counter.add(reserved, capacity, count, ahead)
    except BaseException as error:
        counter.end_refill(mine, error)
        raise
    counter.end_refill(mine)
    for each in reserved:
        reservation.announce(each, target.using)
    return slices


def _reserve(
    target: Target, counter: Counter, size: int, at_least: int, bound: bool
) -> list[Reservation]:
    """Reserve ranges of a target's counter, over all numbers that are known."""
    source, minimum = target.source, counter.seen
    if bound or counter.source is None:
        minimum = max(minimum, source.above_rows(target.using))
    stored = counter.stored
    reserved = source.reserve(target.using, size, needed=at_least, above=minimum)
    counter.source = source
    met = reserved[0].met
    if met is not None and counter.is_found_low(met, stored):
        logger.warning(
            "%s on %r fell back to %d, from at least %d: by a restore, a failover, "
            "SQL, or another site with its node tag. This process goes on over the "
            "numbers that it knows, but others may not know them. Run: "
            "python manage.py hilo_raise_max --database=%s",
            *(source.name, target.using, met, stored, target.using),
        )
    return source.named(reserved, target.collection)


def _wait(target: Target, refill: Refill) -> None:
    if refill.owner == threading.get_ident():
        raise NestedReservation(
            f"This thread is reserving a range of {target.name!r} on {target.using!r} "
            f"already, and was asked for another number meanwhile: by a finalizer "
            f"(__del__), a receiver of connection_created, or a signal handler. Take "
            f"ids elsewhere."
        )
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    try:
        refill.result(timeout=longest)
    except FutureTimeout:
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {target.name!r} on "
            f"{target.using!r} for {longest:g} s; look at what its database waits for."
        ) from None
    except HiLoError as error:
        # Re-raise here, so that waiting threads do not each wait for the same lock.
        raise type(error)(str(error)) from error
    except BaseException:  # noqa: BLE001, S110 - the other thread's own; try here
        pass


def _fetched_ahead(target: Target, seconds: float) -> Ahead | None:
    """Return when to fetch the range after this one; None to wait until it is needed.

    SQLite has one writer at a time, tests end their transactions and databases, and
    only the connection of its own thread knows a tenant's schema.
    """
    share = settings.PREFETCH_AT
    if share is None:
        return None
    connection = connections[target.using]
    if dialect_of(connection).has_one_writer or in_tests() or has_schemas(connection):
        return None
    return Ahead(share, seconds)


def prefetch(target: Target, counter: Counter) -> None:
    """Let a thread fetch the next range, once for each range.

    Callers that run out of numbers meanwhile wait for it, and so does `return_ranges`
    when the process ends.
    """
    if counter.refill is not None:
        return
    mine = Refill()
    try:
        if counter.begin_ahead(mine):
            _idle_thread().put((mine, target, counter))
    except RuntimeError:  # the interpreter is ending
        counter.end_refill(mine)
    except BaseException:
        counter.end_refill(mine)
        raise


def _idle_thread() -> SimpleQueue[Job]:
    """Return the queue of a thread with nothing to do.

    The threads stay, because starting one takes as long as reserving a range. They are
    daemons: if a signal handler interrupts a start, nobody knows of that thread, and it
    must not keep the process from ending.
    """
    if _owner != os.getpid():
        after_fork_in_child()
    try:
        return _idle.pop()
    except IndexError:
        jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(
            target=_work, args=(jobs, _idle), name="hilo", daemon=True
        ).start()
        return jobs


def _work(jobs: SimpleQueue[Job], idle: deque[SimpleQueue[Job]]) -> None:
    while True:
        _fetch(*jobs.get())
        idle.append(jobs)


def _fetch(mine: Refill, target: Target, counter: Counter) -> None:
    try:
        # Meanwhile the alias may have become that of another database.
        if database_key(target.using) == counter.key.database:
            with use_own(target.using):
                _refill_as(mine, target, counter, 0)
    except Exception as error:  # noqa: BLE001 - nobody asked yet
        logger.warning(
            "The next range of %r on %r could not be fetched ahead: %s",
            target.name,
            target.using,
            error,
        )
    finally:
        if not mine.done():
            counter.end_refill(mine)
        # Deleted, not only closed: the next one must have the settings of its time.
        for connection in connections.all(initialized_only=True):
            connection.close()
            del connections[connection.alias]


def after_fork_in_child() -> None:
    """Start without the parent's threads."""
    global _idle, _owner
    _idle, _owner = deque(), os.getpid()


_idle: deque[SimpleQueue[Job]] = deque()
_owner = os.getpid()
