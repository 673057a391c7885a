"""Keep ranges clear of explicit ids, which callers chose themselves.

The number is remembered at once and written to the counter once per transaction, after
its commit. If ranges are bound to the transaction, the floor is too: it is written
inside, and rolls back with the row that needed it.
"""

import logging
from collections.abc import Sequence
from functools import partial

from django.db import Error, connections

from django_hilo._allocation import bound_ranges, pool
from django_hilo._allocation.bound_ranges import Floor
from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.numbers_in_tests import numbers_of
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import Target
from django_hilo._database.transaction import state_of, test_blocks
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, TableMissing

logger = logging.getLogger("django_hilo")


def check_jump(target: Target, number: int, shown: str) -> None:
    """Raise `HiLoError` if ``shown``, an explicit id, is absurdly far above Max."""
    source = target.source
    if number > source.max_number:
        raise HiLoError(
            f"The id '{shown}' is above {source.max_number}, the max_number of "
            f"{source.name}, which all systems that share it must keep to."
        )
    seen = pool.current().counter(target.key).seen
    if number > seen + settings.MAX_FLOOR_JUMP:
        known = max(source.read_max(target.using), source.row_floor(target.using))
        refuse_jump(max(known, seen), number, shown, target.name)


def refuse_jump(known: int, number: int, shown: str, name: str) -> None:
    """Raise `HiLoError` if a number is over ``known`` by more than MAX_FLOOR_JUMP."""
    jump = settings.MAX_FLOOR_JUMP
    if number > known + jump:
        raise HiLoError(
            f"The id '{shown}' is {number - known:,} above the last number of "
            f"{name!r} ({known}), and all later ids would be higher still. If this is "
            f"intended, raise HILO['MAX_FLOOR_JUMP'] (now {jump:_})."
        )


def reserve_explicit(target: Target, numbers: Sequence[int]) -> bool:
    """Drop ranges that contain explicit numbers; return whether new ones are bound."""
    numbers_in_test = numbers_of(target)
    if numbers_in_test is not None:
        numbers_in_test.avoid(target, numbers)
        return True
    counter = pool.current().counter(target.key)
    bound = target.source.in_callers_transaction(target.using)
    if not bound:
        # Before drop(): later refills start above it, earlier ones learn of it there.
        counter.see(max(numbers))
    counter.drop(numbers)
    if bound:
        bound_ranges.drop(connections[target.using], counter, numbers)
        _raise_inside(target, counter, max(numbers))
    return bound


def drop_held(target: Target) -> None:
    """Drop all numbers that the process holds: rows of others have some of them."""
    if numbers_of(target) is not None:
        pool.current().forget_counter(target.key)
    counter = pool.current().counter(target.key)
    counter.drop_all()
    bound_ranges.drop(connections[target.using], counter)


def record_explicit(target: Target, numbers: Sequence[int], using: str) -> None:
    """Keep later ranges above the numbers of explicit ids inserted on ``using``."""
    bound = reserve_explicit(target, numbers)
    counter, floor = pool.current().counter(target.key), Floor(max(numbers))
    if bound or floor.number <= counter.stored:
        return
    connection = connections[using]
    known = bound_ranges.newest(connection, counter, "floor")
    if known is not None:
        known.number = max(known.number, floor.number)
    elif test_blocks(connection) or (mark := state_of(connection).mark()) is None:
        _raise_now(target, counter, floor)
    else:
        bound_ranges.bound_to(mark, counter).floor = floor
        # Even if SQL rolled back a part of the transaction: an unneeded floor is only
        # a gap.
        mark.after_commit.append(partial(_raise_now, target, counter, floor))


def _raise_inside(target: Target, counter: Counter, number: int) -> None:
    connection = connections[target.using]
    known = bound_ranges.newest(connection, counter, "floor")
    if number <= max(counter.stored, known.number if known else 0):
        return
    step = known.step if known else AdaptiveCapacity()
    floor = Floor(_next_floor(target, step, number), step)
    target.source.raise_floor(target.using, floor.number)
    if mark := state_of(connection).mark():
        # One for each write: a savepoint that rolls back undoes its own write.
        bound = bound_ranges.bound_to(mark, counter)
        bound.floor, bound.stored = floor, floor.number


def _next_floor(target: Target, step: AdaptiveCapacity, number: int) -> int:
    size = step.next(*target.capacities, first=0)
    step.note(size)
    return min(number + size, target.source.max_number)


def _raise_now(target: Target, counter: Counter, floor: Floor) -> None:
    highest = _next_floor(target, counter.floor_step, floor.number)
    try:
        target.source.raise_floor(target.using, highest)
    except TableMissing as error:
        # A migration made the row; the counter will start above it.
        logger.debug("No floor: %s", error)
    except (Error, HiLoError):
        # The row is committed and stays; this process keeps clear of its number.
        logger.warning(
            "Max of %r on %r could not be raised to %d. Run: python manage.py "
            "hilo_raise_max --database=%s",
            *(target.name, target.using, floor.number, target.using),
            exc_info=True,
        )
    else:
        # The floor, not Max: Max may be part of a range that is returned.
        counter.note_stored(highest)
