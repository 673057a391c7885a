"""Numbers of bound ranges, which objects may still have as ids after a rollback.

They are burnt when they are taken. The rollback lowered Max again, so another process
may reserve such a number. The next reservation of this process tells: it starts above
all numbers that were burnt, and if it found Max under one of them, that number is among
those that it skipped, and no other process can get it. Then an object that is saved
again keeps its id; otherwise its save is refused (`fields._assigned_ids`).
"""

from typing import Any

from django.db import connections

from django_hilo._allocation.cached_range import Skipped
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.in_transaction import all_bound, bind
from django_hilo._allocation.refill import refill
from django_hilo._database.transaction import Mark, state_of
from django_hilo.counters.own import OwnSource


def sure_numbers(counter: Counter, numbers: set[int]) -> dict[int, Any]:
    """Return those of the burnt numbers that no other process can have.

    With each the mark of the transaction that this depends on, None if it lasts.
    Reserves a range unless an earlier reservation has told. The Max of other systems is
    not told: another process may have any number of theirs. 0 is no number.
    """
    highest, source = max(numbers, default=0), counter.source
    if not highest or not isinstance(source, OwnSource):
        return {}
    # In the child of a fork they are not burnt yet.
    counter.memory.burn(highest)
    while all(each.first <= highest for each, _ in _told(counter)):
        if not source.in_callers_transaction(counter.using):
            refill(counter, 0)
        elif mark := state_of(connections[counter.using]).mark():
            bind(counter, mark, 0)
        else:
            return {}
    told = _told(counter)
    return {
        number: mark
        for number in numbers
        for each, mark in told
        if each.met < number < each.first
    }


def _told(counter: Counter) -> list[tuple[Skipped, Mark | None]]:
    """Return what reservations have told, each with the mark that it depends on."""
    found: list[tuple[Skipped, Mark | None]]
    found = [(each, None) for each in counter.memory.skipped.copy()]
    for mark, bound in all_bound(counter.memory):
        found += [(each, mark) for each in bound.skipped]
    return found
