"""What a burst has left over goes back while the process is quiet."""

import time
from types import SimpleNamespace

import pytest
from django.core.signals import request_finished
from django.db import connection

from django_hilo._allocation import pool
from django_hilo._allocation.cache import CachedRange
from django_hilo._allocation.target import resolve
from django_hilo._operations import idle
from django_hilo.counters import Range, Reservation, reservation, reserve
from django_hilo.generator import next_number, next_numbers
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved, range_returned
from tests.apps.records.models import Order
from tests.support.counters import max_of

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]
LAST = 1_048_576 * 2 - 32  # of the ranges from 32 to 1,048,576


@pytest.fixture
def clock(monkeypatch):
    """Let time stand still until a test moves it."""
    clock = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(idle, "_next_look", 0.0)
    return clock


@pytest.fixture
def burst(clock):
    """Use up ranges until the newest holds 1,048,576; return the last number."""
    while True:
        last = next_number(Order)
        if max_of() == LAST:
            return last
        next_numbers(Order, max_of() - last)


def test_after_an_hour_at_most_4096_are_held(burst, clock, heard):
    """Of a burst, then a number and a request each second."""
    reserved, numbers = heard(range_reserved), []
    returned = heard(range_returned, sender=HiLoDocument)
    for _ in range(3_600):
        clock.now += 1
        numbers.append(next_number(Order))
        request_finished.send(None)
    assert (max_of() - numbers[-1], len(returned), reserved) == (797, 1, [])
    numbers += [next_number(Order) for _ in range(2_000)]
    assert numbers == list(range(burst + 1, burst + 5_601))
    assert reserved[0]["reservation"].range.size == 2_048


def held_after_a_while(clock):
    clock.now += idle.IDLE_AFTER + 1
    request_finished.send(None)
    return max_of() - next_number(Order) + 1


def test_a_range_in_use_is_better_than_a_gap(burst, clock):
    """Others have reserved since, so that the range cannot go back."""
    reserve("orders", 10)
    held_after_a_while(clock)
    assert pool.current().counter(resolve(Order).key).capacity.last[0] == 524_288
    assert next_numbers(Order, 500_000)[-1] < LAST


def test_a_child_leaves_its_parents_range_alone(burst, clock, monkeypatch, new_process):
    """A receiver of ``connection_created`` may fork."""
    monkeypatch.setattr(idle, "_read_max", lambda *_: new_process() or max_of())
    clock.now += idle.IDLE_AFTER + 1
    request_finished.send(None)
    assert (max_of(), pool.current().seen(resolve(Order).key)) == (LAST, 0)


def test_what_the_settings_or_the_field_want_stays(burst, clock, monkeypatch, settings):
    settings.HILO = {**settings.HILO, "CAPACITY": 200_000}
    assert held_after_a_while(clock) == 200_000
    next_numbers(Order, 200_000)
    monkeypatch.setattr(Order._meta.pk, "capacity", 100_000)
    settings.HILO = {**settings.HILO, "CAPACITY": 32}
    assert held_after_a_while(clock) == 100_000


@pytest.mark.parametrize("is_open", [True, False])
def test_the_connection_stays_as_it_was(burst, clock, is_open):
    if not is_open:
        connection.close()
    clock.now += idle.IDLE_AFTER + 1
    idle.return_idle()
    assert (connection.connection is not None) == is_open
    assert max_of() == burst + 4_096


def test_each_request_looks_after_one_counter(clock, heard):
    for name in ("first", "second"):
        next_number(name)
        pool.current().counter(resolve(name).key).capacity.note(5_000)
        next_numbers(name, 32)
    clock.now += idle.IDLE_AFTER + 1
    returned, counts = heard(range_returned), []
    for _ in range(3):
        request_finished.send(None)
        counts.append(len(returned))
    assert counts == [1, 2, 2]


def test_a_range_before_the_newest_stays_and_the_next_is_fetched_in_time():
    counter = pool.Counter(pool.CounterKey(None, "orders", "A"))
    for low, high in (1, 10_000), (10_001, 30_000):
        found = Reservation("orders", "A", Range(low, high), "", "ticket")
        counter.add([CachedRange(found)], high - low + 1, prefetch_at=0.5)
    unused = counter.shrink(4_096)
    assert (unused.next, unused.high) == (14_097, 30_000)
    assert counter.take(12_047)[0].low == 1
    assert not counter.is_due
    assert counter.take(1)[0].low == 12_048
    assert counter.is_due
    assert counter.shrink(4_096) is None
    assert counter.take(2_049) is None


def test_a_return_that_fails_repeats_no_number(burst, clock, monkeypatch, caplog):
    real = reservation.return_range

    def fail(*args, **kwargs):
        real(*args, **kwargs)
        raise RuntimeError("the answer to COMMIT was lost")

    monkeypatch.setattr(reservation, "return_range", fail)
    held_after_a_while(clock)
    assert "Idle numbers were not returned: the answer" in caplog.text
    kept = next_numbers(Order, 4_095)
    assert next_number(Order) > LAST
    assert kept[-1] < LAST
