"""Numbers that threads take out of memory, and that go back."""

import random
from collections import deque

import pytest

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange, take_from
from django_hilo._allocation.find import resolve
from django_hilo.counters import Range, Reservation
from django_hilo.generator import next_id, next_ids, next_number, return_ranges
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.threads import in_threads


@pytest.mark.django_db(transaction=True)
def test_what_threads_leave_goes_back_without_a_gap(settings):
    """All ways to ask, by threads that compete: each number is given, or goes back."""
    settings.HILO = {**settings.HILO, "CAPACITY": 200, "MAX_CAPACITY": 3000}

    def take(seed: int) -> list[str]:
        dice, mine = random.Random(seed), []
        for _ in range(400):
            mine += dice.choice(
                [
                    lambda: [next_id(Order)],
                    lambda: [Order.objects.next_id()],
                    lambda: [next_id("orders")],
                    lambda: next_ids(Order, 3),
                    lambda: [f"orders/{next_number(Order)}-A"],
                ]
            )()
        return mine

    given = [*in_threads(8, take)]
    given.append([next_id(Order)])  # they may have ended with the last of a range
    counter = memory.current().memory(resolve(Order).key)
    numbers = sorted(parse(id).number for mine in given for id in mine)
    assert len(numbers) == len(set(numbers))
    newest = counter._ranges[-1].reservation.range
    assert return_ranges() == 1
    # A thread that waited may have found its numbers elsewhere: SQLite's writers queue.
    left = HiLoDocument.objects.get().max
    assert left >= numbers[-1]
    assert set(range(newest.low, left + 1)) <= set(numbers)


def test_taking_looks_no_further_than_it_needs():
    looked_at = []

    class Watched(CachedRange):
        @property
        def left(self) -> int:
            looked_at.append(self)
            return super().left

    ranges = deque(
        Watched(Reservation("c", "", Range(n, n), "", "")) for n in range(1, 1001)
    )
    assert [taken.low for taken in take_from(ranges, 2)] == [1, 2]
    assert len(set(map(id, looked_at))) <= 3
