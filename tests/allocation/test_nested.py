"""A thread that is asked for a number while it takes one gets an error, not a hang.

The finalizer of any object, or a signal handler, may ask at any line.
"""

import signal
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.memory import Refill
from django_hilo._allocation.find import resolve
from django_hilo.counters import reservation
from django_hilo.exceptions import NestedReservation
from django_hilo.generator import next_id, next_number, next_numbers, return_ranges
from tests.apps.records.models import Order
from tests.support.patience import PATIENCE
from tests.support.threads import begin, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

ASK = [next_id, next_number, lambda target: Order.objects.create(id="orders/7-A")]


def interrupted(owner, name, monkeypatch, ask):
    """Let a method ask for a number once in the middle; return the errors it got."""
    real, found = getattr(owner, name), []

    def nested(*args, **kwargs):
        if not found:
            found.append(None)
            try:
                ask(Order)
            except NestedReservation as error:
                found[0] = error
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, nested)
    return found


@pytest.mark.parametrize("ask", ASK)
def test_while_it_holds_the_lock_of_memory(ask, monkeypatch):
    next_number(Order)
    found = interrupted(CachedRange, "take", monkeypatch, ask)
    assert in_thread(lambda: next_numbers(Order, 1)) == [2]
    assert "already" in str(found[0])
    assert in_thread(lambda: next_numbers(Order, 1)) == [3]
    assert return_ranges() == 1


class Interrupting(deque):
    """Ranges that ask for a number when one is taken of them."""

    def __getitem__(self, place):
        self.errors = []
        try:
            next_id(Order)
        except NestedReservation as error:
            self.errors.append(error)
        return super().__getitem__(place)


def test_while_it_takes_one(monkeypatch):
    next_number(Order)
    counter = memory.current().memory(resolve(Order).key)
    ranges = Interrupting(counter._ranges)
    monkeypatch.setattr(counter, "_ranges", ranges)
    assert next_id(Order) == "orders/2-A"
    assert "already" in str(ranges.errors[0])


@pytest.mark.parametrize("ask", [next_id, next_number])
def test_while_it_reserves_a_range(ask, monkeypatch, settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.5, "RETRY_FOR": 0.5}
    found = interrupted(reservation, "reserve_range", monkeypatch, ask)
    assert next_number(Order) == 1
    assert "already" in str(found[0])
    assert next_number(Order) == 2


def test_other_threads_wait(monkeypatch):
    """Only the thread itself gets the error."""
    inside, go_on = threading.Event(), threading.Event()
    take = CachedRange.take

    def slow(cached, count):
        inside.set()
        go_on.wait(PATIENCE)
        return take(cached, count)

    next_number(Order)
    monkeypatch.setattr(CachedRange, "take", slow)
    first = begin(lambda: next_numbers(Order, 1))
    inside.wait(PATIENCE)
    second = begin(lambda: next_number(Order))
    go_on.set()
    assert sorted([*first(), second()]) == [2, 3]


def test_an_interrupt_of_a_thread_that_waits_is_its_own():
    """As of a time limit: the error must not be taken for that of the other thread."""

    class TimeLimit(Exception):
        pass

    def interrupt(*signal):
        raise TimeLimit

    next_number(Order)
    return_ranges()
    counter = memory.current().memory(resolve(Order).key)
    with ThreadPoolExecutor(1) as executor:
        refill = executor.submit(Refill).result()
    assert counter.begin_refill(refill) is None
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(TimeLimit):
            next_number(Order)
    finally:
        signal.signal(signal.SIGALRM, before)
        counter.end_refill(refill)
