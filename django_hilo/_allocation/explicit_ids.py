"""Explicit ids: an id that no range gave must never be given by a range.

The number is remembered at once and written to the counter once per transaction, after
its commit. Where ranges are bound to the transaction, the floor is too: it is written
inside, and rolls back with the row that made it needed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import connections

from django_hilo._allocation import pool
from django_hilo._allocation.capacity import Pace
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import Target
from django_hilo._allocation.transaction import Ledger
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, TableMissing

logger = logging.getLogger("django_hilo")


def check_jump(target: Target, number: int, shown: str) -> None:
    """Raise `HiLoError` where an explicit id is too far over Max to be meant.

    ``shown`` is the id of that number. Reads the counter only where the process does
    not know it to be high enough.
    """
    jump = settings.MAX_FLOOR_JUMP
    source = target.source
    if number > source.max_number:
        raise HiLoError(
            f"The id '{shown}' is over {source.max_number} (max_number), where the ids "
            f"of {source.name} end for all that share it."
        )
    counter = pool.current().counter(target.key)
    if number <= counter.seen + jump:
        return
    known = max(source.read_max(target.using), source.row_floor(target.using))
    if number > max(known, counter.seen) + jump:
        raise HiLoError(
            f"The id '{shown}' is {number - known} over Max of "
            f"{target.name!r} ({known}), and all ids after it would be higher "
            f"still. If that is meant, "
            f"raise HILO['MAX_FLOOR_JUMP'] (now {jump})."
        )


def expect(target: Target, numbers: Sequence[int]) -> None:
    """Take no number of explicit ids that are about to be inserted from a range."""
    counter = pool.current().counter(target.key)
    counter.drop(numbers)
    if target.source.in_callers_transaction(target.using):
        Ledger.of(connections[target.using]).drop(counter, numbers)
        _raise_inside(target, counter, max(numbers))
    else:
        counter.see(max(numbers))


def observe(target: Target, numbers: Sequence[int], using: str) -> None:
    """Keep all coming ranges over the numbers of explicit ids inserted on ``using``."""
    expect(target, numbers)
    counter, number = pool.current().counter(target.key), max(numbers)
    if target.source.in_callers_transaction(target.using) or counter.is_stored(number):
        return
    if connections[using].in_atomic_block:
        _raise_after_commit(target, counter, number, using)
    else:
        _raise_now(target, counter, number)


def _raise_inside(target: Target, counter: Counter, number: int) -> None:
    connection = connections[target.using]
    ledger = Ledger.of(connection)
    floor = ledger.floor(target.key)
    if counter.is_stored(number) or (floor is not None and number <= floor.number):
        return
    pace = floor.pace if floor is not None else Pace()
    step = pace.next(0, *target.capacities)
    highest = min(number + step, target.source.max_number)
    _write(target, highest)
    if connection.in_atomic_block:
        # One for each write: a savepoint that rolls back takes its own write along.
        noted = ledger.note_floor(
            target.key, highest, lambda floor: counter.note_stored(floor.number)
        )
        noted.pace.note(step)


def _raise_after_commit(
    target: Target, counter: Counter, number: int, using: str
) -> None:
    ledger = Ledger.of(connections[using])
    floor = ledger.floor(target.key)
    if floor is None:
        ledger.note_floor_to_write(
            target.key,
            number,
            lambda floor: _raise_now(target, counter, floor.number),
        )
    else:
        floor.number = max(floor.number, number)


def _raise_now(target: Target, counter: Counter, number: int) -> None:
    step = counter.next_floor_step(*target.capacities)
    highest = min(number + step, target.source.max_number)
    try:
        _write(target, highest)
    except TableMissing as error:
        # A migration made the row; the counter will start over it.
        logger.debug("No floor: %s", error)
    except Exception:
        # The row is committed and stays; this process will keep clear of its number.
        logger.warning(
            "Max of %r on %r could not be raised to %d. Run: python manage.py "
            "hilo_raise_max --database=%s",
            target.name,
            target.using,
            number,
            target.using,
            exc_info=True,
        )
    else:
        # Not Max: that may be part of a range which goes back, the floor cannot.
        counter.note_stored(highest)


def _write(target: Target, number: int) -> None:
    target.source.raise_floor(target.using, number)
