"""Numbers and ids, taken from memory or from a new range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connections

from django_hilo._allocation import pool
from django_hilo._allocation.block import Style
from django_hilo._allocation.cache import Slice
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.refill import allocate_bound, prefetch, refill
from django_hilo._allocation.target import Target
from django_hilo._database.connection import schema_of


def allocate(target: Target, count: int) -> list[Slice]:
    """Take ``count`` numbers, and reserve a range first if memory has fewer."""
    counter = pool.current().counter(target.key)
    slices = counter.take(count)
    if slices is None:
        slices = _allocate_anew(target, counter, count)
    if counter.is_due:
        prefetch(target, counter)
    return slices


def allocate_in_memory(target: Target, count: int) -> list[Slice] | None:
    """Take ``count`` numbers; None if a range must be reserved for them."""
    # Only the connection of the thread that runs sync code knows the tenant's schema.
    if schema_of(connections[target.using]) is not None:
        return None
    counter = pool.current().counter(target.key)
    slices = counter.take(count)
    if counter.is_due:
        prefetch(target, counter)
    return slices


def allocate_id(
    target: Target, spent: Iterator[Any] | None
) -> tuple[Any, Iterator[Any] | None]:
    """Return the next id, and the iterator over the ids after it, if memory has one.

    ``spent`` is the iterator that the caller has used up.
    """
    counter, style, ids = pool.current().counter(target.key), target.style, spent
    while (ids := counter.cut(style, ids)) is not None:
        if counter.is_due:
            prefetch(target, counter)
        for id in ids:
            return id, ids
    return _ids_of(style, _allocate_anew(target, counter, 1))[0], None


def cut_in_memory(target: Target, spent: Iterator[Any] | None) -> Iterator[Any] | None:
    """Return an iterator over ids, not the spent one; None if memory has no number."""
    counter = pool.current().counter(target.key)
    ids = counter.cut(target.style, spent)
    if counter.is_due:
        prefetch(target, counter)
    return ids


def ids_of(target: Target, slices: Iterable[Slice]) -> list[Any]:
    """Return the ids of numbers that were taken."""
    return _ids_of(target.style, slices)


def _ids_of(style: Style, slices: Iterable[Slice]) -> list[Any]:
    found: list[Any] = []
    for low, high, reservation in slices:
        found += style.of(reservation).ids(low, high)
    return found


def _allocate_anew(target: Target, counter: Counter, count: int) -> list[Slice]:
    if target.source.in_callers_transaction(target.using):
        return allocate_bound(target, counter, count)
    slices = refill(target, counter, count)
    while slices is None:
        # Another thread reserved a range.
        slices = counter.take(count) or refill(target, counter, count)
    return slices
