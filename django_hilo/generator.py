"""Numbers and ids, out of memory while the process holds a range.

A target is a collection ("orders"), a label ("shop.Order"), a model, an instance or a
field. Manual numbers and ids are unique per counter only: whoever stores them elsewhere
must keep them apart from those of other collections.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from asgiref.sync import sync_to_async
from django.db import Error, connections

from django_hilo import pool, reservation
from django_hilo.conf import settings
from django_hilo.connections import in_schema, is_still_there, schema_of
from django_hilo.exceptions import HiLoError, ReservationTimeout
from django_hilo.identifiers import check_anchor, check_separator, id_end, id_start
from django_hilo.ledger import Ledger
from django_hilo.pool import Counter, Held, Share
from django_hilo.ranges import HiLoKeyGenerator, Reservation
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.targets import AnyTarget, Target, resolve

logger = logging.getLogger("django_hilo")


def next_number(target: AnyTarget, using: str | None = None) -> int:
    """Return the next number of a target's counter.

    ``using`` is the database of the rows (``None``: the routers' choice). Raises
    LookupError for an unknown target, and what `reserve` raises when a range is needed.
    """
    return _shares(resolve(target, using), 1)[0].low


def next_numbers(target: AnyTarget, n: int, using: str | None = None) -> list[int]:
    """Return the next ``n`` numbers, for one reservation at most; n >= 1."""
    _check_count(n)
    shares = _shares(resolve(target, using), n)
    return list(chain.from_iterable(_numbers(share) for share in shares))


def next_id(
    target: AnyTarget, using: str | None = None, *, anchor: str | None = None
) -> str:
    """Return the next id of a target, as ``orders/33-A``; ``anchor`` ends it.

    Of an integer field or a source it is the number itself: typed code calls
    `next_number`.
    """
    resolved = resolve(target, using)
    end = _anchored(anchor)
    id: str = _ended(_ids(resolved, _shares(resolved, 1)[0])[0], end)
    return id


def next_ids(target: AnyTarget, n: int, using: str | None = None) -> list[str]:
    """Return the next ``n`` ids, for one reservation at most; n >= 1."""
    _check_count(n)
    resolved = resolve(target, using)
    shares = _shares(resolved, n)
    return list(chain.from_iterable(_ids(resolved, share) for share in shares))


def next_numbered_ids(
    target: AnyTarget, n: int, using: str | None = None
) -> list[tuple[int, str]]:
    """Return the next ``n`` ids, each after its number; as `next_ids`."""
    _check_count(n)
    resolved = resolve(target, using)
    return [
        pair
        for share in _shares(resolved, n)
        for pair in zip(_numbers(share), _ids(resolved, share), strict=True)
    ]


def iter_ids(target: AnyTarget, using: str | None = None) -> Iterator[str]:
    """Return an endless iterator of ids, safe among threads."""
    resolve(target, using)
    return iter(lambda: next_id(target, using), None)


def key_generator(source: AnyTarget, using: str | None = None) -> HiLoKeyGenerator:
    """Return the numbers of a source as a `HiLoKeyGenerator`, for scripts.

    They come out of this process's ranges, so that forks, and transactions that roll
    back, give none twice. Any target of `next_number` will do.
    """
    return HiLoKeyGenerator(partial(next_number, source, using), max_lo=1)


async def anext_number(target: AnyTarget, using: str | None = None) -> int:
    """Return the next number; leaves the event loop only when a range is needed."""
    shares = _shares_in_memory(resolve(target, using), 1)
    if shares:
        return shares[0].low
    return await sync_to_async(next_number)(target, using)


async def anext_numbers(
    target: AnyTarget, n: int, using: str | None = None
) -> list[int]:
    """Return the next ``n`` numbers, as `next_numbers`."""
    _check_count(n)
    shares = _shares_in_memory(resolve(target, using), n)
    if shares:
        return list(chain.from_iterable(_numbers(share) for share in shares))
    return await sync_to_async(next_numbers)(target, n, using)


async def anext_id(
    target: AnyTarget, using: str | None = None, *, anchor: str | None = None
) -> str:
    """Return the next id; leaves the event loop only when a range is needed."""
    resolved = resolve(target, using)
    end = _anchored(anchor)
    shares = _shares_in_memory(resolved, 1)
    if shares:
        id: str = _ended(_ids(resolved, shares[0])[0], end)
        return id
    return await sync_to_async(next_id)(target, using, anchor=anchor)


async def anext_ids(target: AnyTarget, n: int, using: str | None = None) -> list[str]:
    """Return the next ``n`` ids, as `next_ids`."""
    _check_count(n)
    resolved = resolve(target, using)
    shares = _shares_in_memory(resolved, n)
    if shares:
        return list(chain.from_iterable(_ids(resolved, share) for share in shares))
    return await sync_to_async(next_ids)(target, n, using)


async def aiter_ids(target: AnyTarget, using: str | None = None) -> AsyncIterator[str]:
    """Yield ids without end."""
    while True:
        yield await anext_id(target, using)


def return_ranges(using: str | None = None) -> int:
    """Give back the unused end of each newest range that this process holds.

    ``using`` limits it to the counters of one alias. Returns how many went back. What
    cannot be returned is logged and stays a gap; the process may go on asking for ids.
    """
    returned = 0
    failed = set()
    for counter in pool.current().counters(using):
        held = counter.drain()
        database = counter.key.database
        is_away = database.without_schema in failed
        if held is None or is_away or not is_still_there(database):
            continue
        try:
            with in_schema(database.alias, database.schema):
                returned += _return(counter, held)
        except Exception as error:  # noqa: BLE001 - a process that ends has no caller
            failed.add(database.without_schema)
            logger.warning("Unused numbers on %r stay a gap: %s", database.alias, error)
    return returned


async def areturn_ranges(using: str | None = None) -> int:
    """Give back the unused ends, as `return_ranges`."""
    return await sync_to_async(return_ranges)(using)


def _check_count(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1, not {n!r}.")


def _numbers(share: Share) -> range:
    return range(share.low, share.high + 1)


def _anchored(anchor: str | None) -> str:
    return "" if anchor is None else f"${check_anchor(anchor)}"


def _ended(id: Any, end: str) -> Any:
    if end and not isinstance(id, str):
        raise ValueError(f"The id {id} is a number, which takes no anchor.")
    return id + end if end else id


def _ids(target: Target, share: Share) -> list[Any]:
    if target.is_integer:
        return list(_numbers(share))
    source = share.reservation
    separator = check_separator(settings.SEPARATOR)
    start = id_start(target.collection, separator, source.server_prefix)
    end = id_end(source.node_tag if settings.SHOW_NODE_TAG else "")
    if target.width:
        width = target.width
        return [f"{start}{number:0{width}}{end}" for number in _numbers(share)]
    return [f"{start}{number}{end}" for number in _numbers(share)]


def _shares(target: Target, count: int) -> list[Share]:
    counter = pool.current().counter(target.key)
    while True:
        shares = counter.take(count)
        if shares is None and target.source.is_bound(target.using):
            shares = _bound_shares(target, counter, count)
        if shares is None:
            shares = _refill(target, counter, count)
        if shares is not None:
            return shares


def _shares_in_memory(target: Target, count: int) -> list[Share] | None:
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


def _return(counter: Counter, held: Held) -> bool:
    source, reserved, last = counter.source, held.reservation, held.next - 1
    alias = counter.key.database.alias
    if source is None or not source.give_back(alias, reserved, last):
        return False
    counter.returned(reserved.range.high, last)
    return True
