"""Numbers of bound ranges that were rolled back, which objects may still have as ids.

The rollback lowered Max again, so another process may reserve such a number. The next
reservation of this process tells: it starts above all numbers that were burnt, and if
it found Max under one of them, that number is among those that it skipped, and no other
process can get it.
"""

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import bound_ranges, pool
from django_hilo._allocation.allocate import bind
from django_hilo._allocation.cached_range import Skipped
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.refill import refill
from django_hilo._allocation.target import Target
from django_hilo._database.transaction import Mark, state_of
from django_hilo.counters.own import OwnCounter


def make_sure(target: Target, numbers: set[int]) -> dict[int, Any]:
    """Return those of the burnt numbers that no other process can have.

    With each the mark of the transaction that this depends on, None if it lasts.
    Reserves a range unless an earlier reservation has told. The Max of other systems is
    not told: another process may have any number of theirs. 0 is no number.
    """
    highest = max(numbers, default=0)
    if not highest or not isinstance(target.source, OwnCounter):
        return {}
    connection, counter = connections[target.using], pool.current().counter(target.key)
    # In the child of a fork they are not burnt yet.
    bound_ranges.burn(connection, counter, highest)
    while all(each.first <= highest for each, _ in _told(connection, counter)):
        if not target.source.in_callers_transaction(target.using):
            refill(target, counter, 0)
        elif mark := state_of(connection).mark():
            bind(target, counter, mark, 0)
        else:
            return {}
    told = _told(connection, counter)
    return {
        number: mark
        for number in numbers
        for each, mark in told
        if each.met < number < each.first
    }


def _told(
    connection: BaseDatabaseWrapper, counter: Counter
) -> list[tuple[Skipped, Mark | None]]:
    """Return what reservations have told, each with the mark that it depends on."""
    found: list[tuple[Skipped, Mark | None]]
    found = [(each, None) for each in counter.skipped.copy()]
    for mark, bound in bound_ranges.held(connection, counter):
        found += [(each, mark) for each in bound.skipped]
    return found
