"""Numbers and ids, from memory while the process holds a range.

A target is a collection ("orders"), a label ("shop.Order"), a model, an instance, a
field or a source. A collection stands in ids as it was spelt; if one model has it,
their width and the size of ranges are those of the model. Numbers and ids that you take
yourself are unique per counter only: if you store them elsewhere, keep them apart from
those of others.
"""

# As text, for the reference to print `AnyTarget` by its name.
from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from django_hilo._allocation import explicit_ids, memory
from django_hilo._allocation.allocate import allocate, allocate_one
from django_hilo._allocation.cached_range import Slice
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.find import AnyTarget, find
from django_hilo._allocation.give_back import give_back
from django_hilo.counters.own import OwnSource
from django_hilo.identifiers import check_anchor, check_number

__all__ = [
    "aiter_ids",
    "anext_id",
    "anext_ids",
    "anext_number",
    "anext_numbers",
    "areturn_ranges",
    "iter_ids",
    "next_id",
    "next_ids",
    "next_number",
    "next_numbers",
    "raise_floor",
    "return_ranges",
]

logger = logging.getLogger("django_hilo")
_Taken = tuple[Counter, list[Slice]]


def next_number(target: AnyTarget, using: str | None = None) -> int:
    """Return the next number of a target's counter.

    ``using`` is the database of the rows (``None``: the routers' choice). Raises
    LookupError for an unknown target, and the errors of `reserve` if a range is needed.
    """
    counter = find(target, using)
    taken = counter.memory.take_one()
    return taken[0] if taken else allocate(counter, 1)[0].low


def next_numbers(target: AnyTarget, n: int, using: str | None = None) -> list[int]:
    """Return the next ``n`` numbers, for one reservation at most; n >= 1."""
    return _numbers(_taken(target, n, using)[1])


def next_id(
    target: AnyTarget, using: str | None = None, *, anchor: str | None = None
) -> str:
    """Return the next id of a target, such as ``orders/33-A``; ``anchor`` ends it.

    The id of an integer field or a source is the number itself; typed code calls
    `next_number` instead.
    """
    end = "" if anchor is None else f"${check_anchor(anchor)}"
    id: str = allocate_one(find(target, using))[0]
    return _ended(id, end) if end else id


def next_ids(target: AnyTarget, n: int, using: str | None = None) -> list[str]:
    """Return the next ``n`` ids, for one reservation at most; n >= 1."""
    counter, slices = _taken(target, n, using)
    return counter.ids_of(slices)


def iter_ids(target: AnyTarget, using: str | None = None) -> Iterator[str]:
    """Return an endless iterator of ids, as `next_id` returns them."""
    find(target, using)  # raises the error of an unknown one
    return iter(partial(next_id, target, using), None)


async def anext_number(target: AnyTarget, using: str | None = None) -> int:
    """Return the next number; leaves the event loop only when a range is needed."""
    return (await _ataken(target, 1, using))[1][0].low


async def anext_numbers(
    target: AnyTarget, n: int, using: str | None = None
) -> list[int]:
    """Return the next ``n`` numbers, as `next_numbers`."""
    return _numbers((await _ataken(target, n, using))[1])


async def anext_id(
    target: AnyTarget, using: str | None = None, *, anchor: str | None = None
) -> str:
    """Return the next id; leaves the event loop only when a range is needed."""
    end = "" if anchor is None else f"${check_anchor(anchor)}"
    counter, slices = await _ataken(target, 1, using)
    return _ended(counter.ids_of(slices)[0], end)


async def anext_ids(target: AnyTarget, n: int, using: str | None = None) -> list[str]:
    """Return the next ``n`` ids, as `next_ids`."""
    counter, slices = await _ataken(target, n, using)
    return counter.ids_of(slices)


async def aiter_ids(target: AnyTarget, using: str | None = None) -> AsyncIterator[str]:
    """Yield ids without end."""
    while True:
        yield await anext_id(target, using)


def raise_floor(target: AnyTarget, number: int, using: str | None = None) -> None:
    """Give no number up to ``number`` from now on; a higher counter stays as it is.

    Whatever counts: our counter, a source, the sequence of an integer key on
    PostgreSQL. This process drops the numbers that it holds; others use theirs first.
    """
    counter = find(target, using)
    counter.source.raise_floor(counter.using, check_number(number))
    explicit_ids.drop_held(counter)
    if not isinstance(counter.source, OwnSource):
        # A session of PostgreSQL may have lower values of a sequence in its cache.
        counter.memory.see(number)


def return_ranges(using: str | None = None) -> int:
    """Return the unused end of each counter's newest range to the counter.

    ``using`` limits this to the counters of one alias. Returns how many ranges were
    returned. Those that cannot be returned are logged and become gaps. The process may
    ask for ids again afterwards.
    """
    return give_back(memory.current().memories(using))


async def areturn_ranges(using: str | None = None) -> int:
    """Return the unused ends, as `return_ranges`."""
    return await sync_to_async(return_ranges)(using)


def _taken(target: AnyTarget, n: int, using: str | None) -> _Taken:
    counter = find(target, using)
    return counter, allocate(counter, _checked(n))


async def _ataken(target: AnyTarget, n: int, using: str | None) -> _Taken:
    counter = find(target, using)
    # Only the thread of sync code knows the tenant's schema, and the TestCase.
    is_elsewhere = counter.may_be_tested or counter.key[0].schema is not None
    slices = None if is_elsewhere else counter.memory.take(_checked(n))
    if slices is None:
        return await sync_to_async(_taken)(target, n, using)
    return counter, slices


def _checked(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be an integer of at least 1, not {n!r}.")
    return n


def _numbers(slices: Iterable[Slice]) -> list[int]:
    return [number for each in slices for number in range(each.low, each.high + 1)]


def _ended(id: Any, end: str) -> str:
    if end and not isinstance(id, str):
        raise ValueError(f"{id} is an integer id, which cannot have an anchor.")
    return id + end if end else id  # type: ignore[no-any-return] # int, as next_id says
