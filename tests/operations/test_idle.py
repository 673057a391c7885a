import time
from unittest.mock import Mock

import pytest
from django.core.signals import request_started
from django.db import transaction

from django_hilo._allocation import capacity
from django_hilo._operations import idle
from django_hilo.counters import reservation, reserve
from django_hilo.exceptions import ConcurrencyError
from django_hilo.generator import next_number, next_numbers, return_ranges
from django_hilo.models import HiLoDocument
from tests.support.databases import CHOSEN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


class Clock:
    def __init__(self) -> None:
        self.seconds = time.monotonic()

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (capacity, idle):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(idle, "_looked_at", 0.0)
    return clock


def row() -> HiLoDocument:
    return HiLoDocument.objects.get(collection="orders", node_tag="A")


def burst() -> int:
    """Use numbers at full speed until the range is long; return the last."""
    number = 0
    while not HiLoDocument.objects.exists() or row().size < 100_000:
        number = next_numbers("orders", 1000)[-1]
    return number


def request() -> None:
    request_started.send(object())


def test_an_hour_after_a_burst_few_numbers_are_held(clock):
    last = burst()
    assert row().max > last + 50_000
    for _ in range(3600):
        clock.seconds += 1
        request()
        assert next_number("orders") == last + 1
        last += 1
    assert row().max - last <= idle.KEPT
    assert next_number("orders") == last + 1


def test_a_range_in_use_is_left_alone(clock):
    last = burst()
    before = row()
    clock.seconds += capacity.HALVES_OVER
    request()
    assert row().ticket == before.ticket
    assert next_number("orders") == last + 1


def test_no_number_is_lost_if_another_process_has_reserved(clock):
    last = burst()
    others = reserve("orders", 10)
    clock.seconds += 3600
    request()
    assert next_numbers("orders", 5000) == list(range(last + 1, last + 5001))
    assert row().max == others.range.high
    # The next range is half as long, as if nobody had looked.
    size = others.range.low - 1 - (last + 5000)
    next_numbers("orders", size)
    long = 131_072
    assert next_number("orders") == others.range.high + 1
    assert row().size == long // 2


def test_it_looks_once_a_minute(clock):
    burst()
    clock.seconds += 3600
    request()
    first = row().max
    burst()
    request()
    assert row().max > first + 50_000


def test_a_return_that_fails_leaves_a_gap(clock, monkeypatch, caplog):
    last = burst()
    high = row().max
    clock.seconds += 3600
    fail = Mock(side_effect=ConcurrencyError("the database is away"))
    with monkeypatch.context() as away:
        away.setattr(reservation, "retry", fail)
        request()
    assert caplog.text.count("the database is away") == 1
    assert last < high < next_number("orders")


@pytest.mark.skipif(CHOSEN != "sqlite", reason="of SQLite")
def test_inside_a_transaction_it_waits_for_the_next_request(clock):
    last = burst()
    clock.seconds += 3600
    with transaction.atomic():
        idle.return_idle()
        assert next_number("orders") == last + 1
    clock.seconds += 3600
    request()
    assert row().max == last + 1


def test_a_process_that_ends_returns_the_rest(clock):
    last = burst()
    clock.seconds += 3600
    request()
    assert row().max == last
    assert return_ranges() == 0
