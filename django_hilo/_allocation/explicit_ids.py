"""Keep this process's ranges clear of explicit ids, which callers chose themselves.

After the INSERT, or before that of new objects beside it, the number is remembered, and
held ranges that contain it are dropped (in a TestCase all of them, if it is above all
numbers seen); other ranges go on, also below it. Unless this process knows Max to be as
high, floor and Max are raised to it, or higher, once per transaction, after its commit;
at once in autocommit. If ranges are bound to the transaction, only the counter's row is
raised, inside it, and rolls back with the row that needed it. Another process that
holds the number gets an IntegrityError when it comes to it.

Which ids count is said by ``number_in()`` of each kind of field: text ids with the
counter's collection, and its node tag or none; in a series, those that its look can
read. As with every key that is set, ``save()`` tries an UPDATE first: if a row has the
id, nothing is raised.
"""

import logging
from collections.abc import Sequence
from functools import partial

from django.db import Error, connections

from django_hilo._allocation.capacity import AdaptiveCapacity
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.in_tests import block_on
from django_hilo._allocation.in_transaction import Floor, bound_to, drop_bound, newest
from django_hilo._database.transaction import state_of
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, TableMissing

logger = logging.getLogger("django_hilo")


def check_jump(counter: Counter, number: int, shown: str) -> None:
    """Raise `HiLoError` if ``shown``, an explicit id, is absurdly far above Max."""
    source = counter.source
    if number > source.max_number:
        raise HiLoError(
            f"The id '{shown}' is above {source.max_number}, the max_number of "
            f"{source.name}, which all systems that share it must keep to."
        )
    seen = counter.memory.seen
    if number > seen + settings.MAX_FLOOR_JUMP:
        known = max(source.read_max(counter.using), source.row_floor(counter.using))
        refuse_jump(max(known, seen), number, shown, counter.name)


def refuse_jump(known: int, number: int, shown: str, name: str) -> None:
    """Raise `HiLoError` if a number is over ``known`` by more than MAX_FLOOR_JUMP."""
    jump = settings.MAX_FLOOR_JUMP
    if number > known + jump:
        raise HiLoError(
            f"The id '{shown}' is {number - known:,} above the last number of "
            f"{name!r} ({known}), and all later ids would be higher still. If this is "
            f"intended, raise HILO['MAX_FLOOR_JUMP'] (now {jump:_})."
        )


def avoid(counter: Counter, numbers: Sequence[int]) -> bool:
    """Drop ranges that contain explicit numbers; return whether new ones are bound.

    Then the floor is raised here, in the transaction.
    """
    is_bound = counter.source.in_callers_transaction(counter.using)
    if not is_bound:
        # Before drop(): later refills start above it, earlier ones learn of it there.
        counter.memory.see(max(numbers))
    counter.memory.drop(numbers)
    if is_bound:
        drop_bound(counter.memory, numbers)
        _raise_inside(counter, max(numbers))
    return is_bound


def drop_held(counter: Counter) -> None:
    """Drop all numbers that the process holds: rows of others have some of them."""
    counter.memory.drop_all()
    drop_bound(counter.memory)


def record(counter: Counter, numbers: Sequence[int], using: str) -> None:
    """Keep later ranges above the numbers of explicit ids.

    The rows are inserted on ``using``, whose commit raises the floor; the counter may
    be on another database.
    """
    is_bound, floor = avoid(counter, numbers), Floor(max(numbers))
    if is_bound or floor.number <= counter.memory.stored:
        return
    connection = connections[using]
    known = newest(counter.memory, connection, "floor")
    if known is not None:
        known.number = max(known.number, floor.number)
        return
    mark = state_of(connection).mark() if block_on(connection) is None else None
    if mark is None:
        _raise_now(counter, floor)
    else:
        bound_to(mark, counter.memory).floor = floor
        # Even if SQL rolled back a part of the transaction: an unneeded floor is only
        # a gap.
        mark.after_commit.append(partial(_raise_now, counter, floor))


def _raise_inside(counter: Counter, number: int) -> None:
    connection = connections[counter.using]
    known = newest(counter.memory, connection, "floor")
    if number <= max(counter.memory.stored, known.number if known else 0):
        return
    step = known.step if known else AdaptiveCapacity()
    floor = Floor(_next_floor(counter, step, number), step)
    counter.source.raise_floor(counter.using, floor.number)
    if mark := state_of(connection).mark():
        # One for each write: a savepoint that rolls back undoes its own write.
        bound = bound_to(mark, counter.memory)
        bound.floor, bound.stored = floor, floor.number


def _next_floor(counter: Counter, step: AdaptiveCapacity, number: int) -> int:
    size = step.next(*counter.capacities, first=0)
    step.note(size)
    return min(number + size, counter.source.max_number)


def _raise_now(counter: Counter, floor: Floor) -> None:
    highest = _next_floor(counter, counter.memory.floor_step, floor.number)
    try:
        counter.source.raise_floor(counter.using, highest)
    except TableMissing as error:
        # A migration made the row; the counter will start above it.
        logger.debug("No floor: %s", error)
    except (Error, HiLoError):
        # The row is committed and stays; this process keeps clear of its number.
        logger.warning(
            "Max of %r on %r could not be raised to %d. Run: python manage.py "
            "hilo_raise_max --database=%s",
            *(counter.name, counter.using, floor.number, counter.using),
            exc_info=True,
        )
    else:
        # Max cannot fall below it, the floor; Max itself may be of a returned range.
        counter.memory.note_stored(highest)
