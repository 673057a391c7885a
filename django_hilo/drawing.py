"""Numbers out of memory while the process holds a range, else out of a new one.

One thread reserves, the others wait for it: with all locks released, and with errors
shared.
"""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import replace

from django.db import Error, connections

from django_hilo import pool, reservation
from django_hilo.conf import settings
from django_hilo.connections import schema_of
from django_hilo.exceptions import HiLoError, ReservationTimeout
from django_hilo.ledger import Ledger
from django_hilo.pool import Counter, Share
from django_hilo.ranges import Reservation
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.targets import Target


def draw(target: Target, count: int) -> list[Share]:
    """Take ``count`` numbers, and reserve a range first where memory has fewer."""
    counter = pool.current().counter(target.key)
    while True:
        shares = counter.take(count)
        if shares is None and target.source.is_bound(target.using):
            shares = _bound_shares(target, counter, count)
        if shares is None:
            shares = _refill(target, counter, count)
        if shares is not None:
            return shares


def draw_in_memory(target: Target, count: int) -> list[Share] | None:
    """Take ``count`` numbers, None where a range must be reserved for them."""
    # The tenant's schema is known to the connection of the thread that runs sync code.
    if schema_of(connections[target.using]) is not None:
        return None
    return pool.current().counter(target.key).take(count)


def _bound_shares(target: Target, counter: Counter, count: int) -> list[Share]:
    ledger = Ledger.of(connections[target.using])
    shares = ledger.take(counter, count)
    while shares is None:
        capacity = ledger.next_capacity(counter, *target.capacities, count)
        reserved = _reserve(target, counter, max(capacity, count), count)
        shares = ledger.add(counter, reserved, capacity, count)
        _announce(target, reserved)
    return shares


def _refill(target: Target, counter: Counter, count: int) -> list[Share] | None:
    """Reserve a range and take from it, or wait for the thread that is doing so."""
    _hold_connection(target.using)
    mine: Future[None] = Future()
    with counter.lock:
        waiting_for = counter.refill
        if waiting_for is None:
            counter.refill = mine
    if waiting_for is not None:
        _wait(target, waiting_for)
        return None
    try:
        capacity = counter.next_capacity(*target.capacities)
        reserved = _reserve(target, counter, max(capacity, count), count)
        shares = counter.add(reserved, capacity, count)
    except BaseException as error:
        counter.refill = None
        mine.set_exception(error)
        raise
    counter.refill = None
    mine.set_result(None)
    _announce(target, reserved)
    return shares


def _hold_connection(using: str) -> None:
    """Take the thread's connection out of Django's pool before others wait for it.

    A thread that waits in a transaction may hold the pool's last.
    """
    connection = connections[using]
    if connection.settings_dict["OPTIONS"].get("pool"):
        with suppress(Error):  # the reservation tells, and tries again
            connection.ensure_connection()


def _wait(target: Target, refill: Future[None]) -> None:
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    try:
        refill.result(timeout=longest)
    except FutureTimeout:
        raise ReservationTimeout(
            f"Another thread has been reserving a range of {target.name!r} on "
            f"{target.using!r} for {longest:g} s; look at what its database waits for."
        ) from None
    except HiLoError as error:
        # Shared, so that threads in a queue do not wait for the same lock in turn.
        raise type(error)(str(error)) from error
    except BaseException:  # noqa: BLE001, S110 - the other thread's own; try here
        pass


def _reserve(
    target: Target, counter: Counter, size: int, needed: int
) -> list[Reservation]:
    source, above = target.source, counter.seen
    is_first = counter.source is None or source.is_bound(target.using)
    if is_first and not source.looks_at_rows(target.using):
        above = max(above, source.row_floor(target.using))
    reserved = source.reserve(target.using, size, needed=needed, above=above)
    counter.source = source
    if isinstance(source, ForeignCounter) and target.collection:
        # For receivers of `range_reserved`, who know of collections.
        return [replace(each, collection=target.collection) for each in reserved]
    return reserved


def _announce(target: Target, reserved: list[Reservation]) -> None:
    for each in reserved:
        reservation.announce(each, target.using)
