"""Numbers and ids: out of memory, or of a new range.

The range belongs to the caller's transaction where it must.
"""

from typing import Any

from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.in_transaction import take_anew, take_bound
from django_hilo._allocation.refill import refill
from django_hilo._database.transaction import STATE


def allocate(counter: Counter, count: int) -> list[Slice]:
    """Take ``count`` numbers, and reserve a range first if memory has fewer."""
    return counter.memory.take(count) or _allocate_anew(counter, count)


def allocate_one(counter: Counter) -> tuple[Any, list[Slice]]:
    """Take one id; return also its slice, unless a rollback cannot take it back."""
    taken = counter.memory.take_one()
    if taken is not None:
        return counter.id_of(*taken), []
    # Its transaction may have reserved ranges.
    slices = take_bound(counter.memory, 1) if STATE in counter.connection_vars else None
    slices = slices or _allocate_anew(counter, 1)
    return counter.id_of(slices[0].low, slices[0].reservation), slices


def _allocate_anew(counter: Counter, count: int) -> list[Slice]:
    if counter.source.in_callers_transaction(counter.using):
        return take_anew(counter, count)
    slices = None
    while slices is None:
        # None again after another thread's reservation.
        slices = refill(counter, count) or counter.memory.take(count)
    return slices
