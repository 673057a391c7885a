"""Numbers out of memory while the process holds a range, else out of a new one."""

from __future__ import annotations

from django.db import connections

from django_hilo._allocation import pool
from django_hilo._allocation.block import Block
from django_hilo._allocation.cache import Share
from django_hilo._allocation.formats import Style
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._allocation.prefetching import prefetch
from django_hilo._allocation.refill import announce, refill, reserve
from django_hilo._allocation.target import Target
from django_hilo._allocation.transaction import Ledger
from django_hilo._database.connection import schema_of


def draw(target: Target, count: int) -> list[Share]:
    """Take ``count`` numbers, and reserve a range first where memory has fewer."""
    counter = pool.current().counter(target.key)
    while True:
        shares = counter.take(count)
        if shares is None and target.source.in_callers_transaction(target.using):
            shares = _bound_shares(target, counter, count)
        if shares is None:
            shares = refill(target, counter, count)
        if shares is not None:
            break
    if counter.is_due:
        prefetch(target, counter)
    return shares


def draw_in_memory(target: Target, count: int) -> list[Share] | None:
    """Take ``count`` numbers, None where a range must be reserved for them."""
    # The tenant's schema is known to the connection of the thread that runs sync code.
    if schema_of(connections[target.using]) is not None:
        return None
    counter = pool.current().counter(target.key)
    shares = counter.take(count)
    if counter.is_due:
        prefetch(target, counter)
    return shares


def cut_in_memory(
    target: Target, key: CounterKey, style: Style, spent: Block | None
) -> Block | None:
    """Return a block of ids, not the spent one; None where memory has no number.

    ``key`` is the target's, which callers know.
    """
    counter = pool.current().counter(key)
    block = counter.cut(style, spent)
    if counter.is_due:
        prefetch(target, counter)
    return block


def _bound_shares(target: Target, counter: Counter, count: int) -> list[Share]:
    ledger = Ledger.of(connections[target.using])
    shares = ledger.take(counter, count)
    while shares is None:
        capacity = ledger.next_capacity(counter, *target.capacities, count)
        reserved = reserve(target, counter, max(capacity, count), count)
        shares = ledger.add(counter, reserved, capacity, count)
        announce(target, reserved)
    return shares
