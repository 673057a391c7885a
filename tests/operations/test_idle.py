"""What a burst has left over goes back while the process is quiet."""

import threading
import time
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.core.signals import request_finished
from django.db import connection, connections

from django_hilo._allocation import pool
from django_hilo._allocation.cache import CachedRange
from django_hilo._allocation.target import resolve
from django_hilo._operations import idle
from django_hilo.counters import Range, Reservation, raise_floor, reservation, reserve
from django_hilo.generator import next_id, next_number, next_numbers
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved, range_returned
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.counters import counter, max_of

ALL = {"default", "other"}
pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True, databases=ALL),
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


def wait_a_while(clock):
    """Let two looks pass."""
    for _ in range(2):
        clock.now += idle.IDLE_AFTER
        request_finished.send(None)


def held(target=Order):
    return pool.current().counter(resolve(target).key).newest.left


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
    assert reserved[0]["reservation"].range.size == 4_096


def test_at_a_steady_rate_ranges_become_as_small_as_by_ravendbs_rule(
    burst, clock, heard
):
    reserved, returned = (
        heard(range_reserved),
        heard(range_returned, sender=HiLoDocument),
    )
    for _ in range(1_800):
        clock.now += 1
        next_numbers(Order, 1_000)
        request_finished.send(None)
    assert reserved[-1]["reservation"].range.size == 32_768
    assert len(returned) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda: reserve("orders", 10),
        lambda: raise_floor("orders", 5),
        lambda: call_command("hilo_raise_max", "--database=default", verbosity=0),
        lambda: counter().save(),
        lambda: Order.objects.create(id=f"orders/{LAST + 10}-A"),
    ],
    ids=["a reservation", "a floor", "hilo_raise_max", "a save", "an explicit id"],
)
def test_a_range_in_use_is_better_than_a_gap(burst, clock, change):
    """The counter was changed since, so that the range cannot go back."""
    change()
    wait_a_while(clock)
    assert next_numbers(Order, 500_000)[-1] < LAST


def test_a_sequence_takes_nothing_back(clock):
    next_number(Item)
    pool.current().counter(resolve(Item).key).capacity.note(524_288)
    next_numbers(Item, 31)
    next_number(Item)
    before = held(Item)
    wait_a_while(clock)
    has_sequence = connection.vendor == "postgresql"
    assert held(Item) == (before if has_sequence else 4_096)


def test_a_child_leaves_its_parents_range_alone(burst, clock, monkeypatch, new_process):
    """A receiver of ``connection_created`` may fork."""
    monkeypatch.setattr(idle, "_is_unchanged", lambda *_: new_process() or True)
    wait_a_while(clock)
    assert (max_of(), pool.current().seen(resolve(Order).key)) == (LAST, 0)


def test_what_the_settings_or_the_field_want_stays(burst, clock, monkeypatch, settings):
    settings.HILO = {**settings.HILO, "CAPACITY": 200_000}
    wait_a_while(clock)
    assert held() == max_of() - burst == 200_000
    next_numbers(Order, 200_001)
    monkeypatch.setattr(Order._meta.pk, "capacity", 100_000)
    settings.HILO = {**settings.HILO, "CAPACITY": 32}
    wait_a_while(clock)
    assert held() == 100_000


@pytest.mark.parametrize("is_open", [True, False])
def test_the_connection_stays_as_it_was(burst, clock, monkeypatch, is_open):
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 600)
    if not is_open:
        connection.close()
    for _ in range(2):
        clock.now += idle.IDLE_AFTER
        idle.return_idle()
    assert (connection.connection is not None) == is_open
    assert max_of() == burst + 4_096


def test_the_numbers_of_a_tenant_go_back_in_its_schema(burst, clock, monkeypatch):
    seen, real = [], idle._is_unchanged
    monkeypatch.setitem(vars(connections["default"]), "schema_name", "tenant")
    next_id("orders")
    pool.current().counter(resolve("orders").key).capacity.note(5_000)
    next_numbers("orders", 32)
    monkeypatch.setitem(vars(connections["default"]), "schema_name", "another")

    def note(*args):
        seen.append(connection.schema_name)
        return real(*args)

    monkeypatch.setattr(idle, "_is_unchanged", note)
    wait_a_while(clock)
    assert (sorted(map(str, seen)), connection.schema_name) == (
        ["None", "tenant"],
        "another",
    )


def test_those_of_a_server_go_back_in_a_thread(burst, clock, monkeypatch):
    """SQLite's file is not to be open in a thread when another one forks."""
    monkeypatch.setattr(idle, "in_tests", lambda: False)
    threads, real = [], idle._is_unchanged

    def note(reserved, db):
        threads.append((threading.current_thread(), db))
        return real(reserved, db)

    monkeypatch.setattr(idle, "_is_unchanged", note)
    here = threading.current_thread()
    wait_a_while(clock)
    for thread in threading.enumerate():
        if thread.name == "hilo":
            thread.join()
    [(thread, db)] = threads
    assert ((thread is here), db) == {
        "sqlite": (True, "default"),
    }.get(connection.vendor, (False, "default:hilo"))
    assert max_of() == burst + 4_096


def test_one_that_fails_does_not_keep_another_waiting(
    burst, clock, monkeypatch, caplog
):
    real, other = idle._is_unchanged, "first"
    next_number(other, using="other")
    first = pool.current().counter(resolve(other, "other").key)
    first.capacity.note(5_000)
    next_numbers(other, 32, using="other")
    known = pool.current()._counters
    monkeypatch.setattr(pool.current(), "_counters", dict(reversed(known.items())))

    def look(reserved, db):
        return 1 / 0 if reserved.collection == other else real(reserved, db)

    monkeypatch.setattr(idle, "_is_unchanged", look)
    wait_a_while(clock)
    assert "Idle numbers of 'first' on 'other' were not returned: " in caplog.text
    assert (max_of(), first.newest.left > 4_096) == (burst + 4_096, True)


def test_a_range_before_the_newest_stays_and_the_next_is_fetched_in_time():
    held = pool.Counter(pool.CounterKey(None, "orders", "A"))
    for low, high in (1, 10_000), (10_001, 30_000):
        found = Reservation("orders", "A", Range(low, high), "", "ticket")
        held.add([CachedRange(found)], high - low + 1, prefetch_at=0.5)
    unused = held.shrink(4_096)
    assert (unused.next, unused.high) == (14_097, 30_000)
    assert held.take(12_047)[0].low == 1
    assert not held.is_due
    assert held.take(1)[0].low == 12_048
    assert held.is_due
    assert held.shrink(4_096) is None
    assert held.take(2_049) is None


def test_a_return_that_fails_repeats_no_number(burst, clock, monkeypatch, caplog):
    real = reservation.return_range

    def fail(*args, **kwargs):
        real(*args, **kwargs)
        raise RuntimeError("the answer to COMMIT was lost")

    monkeypatch.setattr(reservation, "return_range", fail)
    wait_a_while(clock)
    assert "'orders' on 'default' were not returned: the answer" in caplog.text
    kept = next_numbers(Order, 4_096)
    assert next_number(Order) > LAST
    assert kept[-1] < LAST
