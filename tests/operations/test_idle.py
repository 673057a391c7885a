"""What a burst has left over goes back while the process is quiet."""

import time
from types import SimpleNamespace

import pytest
from django.core.signals import request_finished
from django.db import OperationalError

from django_hilo._operations import idle
from django_hilo.counters import reservation, reserve
from django_hilo.generator import next_number, next_numbers, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved, range_returned
from tests.apps.records.models import Order
from tests.support.counters import max_of

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]
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
    assert max_of() - burst > 1_000_000
    reserved, numbers = heard(range_reserved), []
    returned = heard(range_returned, "last", sender=HiLoDocument)
    for _ in range(3_600):
        clock.now += 1
        numbers.append(next_number(Order))
        request_finished.send(None)
    assert numbers == list(range(burst + 1, burst + 3_601))
    assert (max_of() - numbers[-1], len(returned), reserved) == (797, 1, [])
    numbers += [next_number(Order) for _ in range(2_000)]
    assert len({burst, *numbers}) == 5_601
    assert reserved[0]["reservation"].range.size == 2_048
    assert return_ranges() == 1
    assert max_of() == numbers[-1]


def held_after_a_while(clock):
    clock.now += idle.IDLE_AFTER + 1
    request_finished.send(None)
    return max_of() - next_number(Order) + 1


def test_a_range_in_use_is_better_than_a_gap(burst, clock):
    """Others have reserved since, so that the range cannot go back."""
    reserve("orders", 10)
    held_after_a_while(clock)
    assert next_numbers(Order, 500_000)[-1] < LAST


def test_as_many_as_the_field_or_the_settings_want_stay(burst, clock, monkeypatch):
    monkeypatch.setattr(Order._meta.pk, "capacity", 100_000)
    assert held_after_a_while(clock) == 100_000


def test_a_return_that_fails_loses_numbers_and_repeats_none(
    burst, clock, monkeypatch, caplog
):
    real = reservation.return_range

    def fail(*args, **kwargs):
        real(*args, **kwargs)
        raise OperationalError("the answer to COMMIT was lost")

    monkeypatch.setattr(reservation, "return_range", fail)
    held_after_a_while(clock)
    assert "Idle numbers on 'default' were not returned" in caplog.text
    kept = next_numbers(Order, 4_095)
    assert next_number(Order) > LAST
    assert kept[-1] < LAST
