"""What a burst has left over goes back while the process is quiet."""

import threading
import time
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.core.signals import request_finished
from django.db import connection, connections

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.find import resolve
from django_hilo._operations import idle
from django_hilo.counters import Range, Reservation, raise_floor, reserve, returning
from django_hilo.generator import next_number, next_numbers
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


def have_many(target, using="default"):
    """Return a counter that holds 10,000 numbers."""
    next_number(target, using)
    counter = memory.current().memory(resolve(target, using).key)
    counter.capacity.note(5_000)
    next_numbers(target, 32, using)
    return counter


@pytest.fixture
def looks(monkeypatch):
    """Note from where the rows of counters are looked at."""
    found, real = [], idle._is_unchanged

    def look(reserved, db):
        schema = getattr(connection, "schema_name", None)
        found.append((threading.current_thread(), db, schema))
        if reserved.collection == "broken":
            raise RuntimeError
        return real(reserved, db)

    monkeypatch.setattr(idle, "_is_unchanged", look)
    return found


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


def test_a_steady_process_gets_the_ranges_of_ravendbs_rule(burst, clock, heard):
    reserved = heard(range_reserved)
    for _ in range(1_800):
        clock.now += 1
        next_numbers(Order, 1_000)
        request_finished.send(None)
    assert reserved[-1]["reservation"].range.size == 32_768


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
    counter = have_many(Item)
    before = counter.newest.left
    wait_a_while(clock)
    has_sequence = connection.vendor == "postgresql"
    assert counter.newest.left == (before if has_sequence else 4_096)


def test_a_child_leaves_its_parents_range_alone(burst, clock, monkeypatch, new_process):
    """A receiver of ``connection_created`` may fork."""
    monkeypatch.setattr(idle, "_is_unchanged", lambda *_: new_process() or True)
    wait_a_while(clock)
    assert (max_of(), memory.current().seen(resolve(Order).key)) == (LAST, 0)


def test_what_the_settings_or_the_field_want_stays(burst, clock, monkeypatch, settings):
    settings.HILO = {**settings.HILO, "CAPACITY": 200_000}
    wait_a_while(clock)
    assert max_of() - burst == 200_000
    last = next_numbers(Order, 200_001)[-1]
    monkeypatch.setattr(Order._meta.pk, "capacity", 100_000)
    settings.HILO = {**settings.HILO, "CAPACITY": 32}
    wait_a_while(clock)
    assert max_of() - last == 100_000


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


def test_the_numbers_of_a_tenant_go_back_in_its_schema(clock, monkeypatch, looks):
    known = vars(connections["default"])
    monkeypatch.setitem(known, "schema_name", "tenant")
    have_many("orders")
    monkeypatch.setitem(known, "schema_name", "another")
    wait_a_while(clock)
    assert [schema for *_, schema in looks] == ["tenant"]
    assert connection.schema_name == "another"


def test_those_of_a_server_go_back_in_a_thread(burst, clock, monkeypatch, looks):
    """SQLite's file is not to be open in a thread when another one forks."""
    monkeypatch.setattr(idle, "is_test_process", lambda: False)
    wait_a_while(clock)
    for each in threading.enumerate():
        if each.name == "hilo":
            each.join()
    [(thread, db, _)] = looks
    is_here = connection.vendor == "sqlite"
    assert db == ("default" if is_here else "default:hilo")
    assert (thread is threading.current_thread()) == is_here
    assert max_of() == burst + 4_096


def test_one_that_fails_does_not_keep_another_waiting(clock, looks, caplog):
    broken, other = have_many("broken", "other"), have_many("orders")
    wait_a_while(clock)
    assert "Idle numbers of 'broken' on 'other' were not returned: " in caplog.text
    assert (broken.newest.left > 4_096, other.newest.left) == (True, 4_096)


def test_a_range_before_the_newest_stays():
    held = memory.Memory((None, "orders", "A"))
    for low, high in (1, 10_000), (10_001, 30_000):
        found = Reservation("orders", "A", Range(low, high), "", "ticket")
        held.add([CachedRange(found)])
    unused = held.shrink(held.newest, 4_096)
    assert (unused.next, unused.high) == (14_097, 30_000)
    assert held.take(12_047)[0].low == 1
    assert held.shrink(held.newest, 4_096) is None
    assert held.take(2_050) is None


def test_a_return_that_fails_repeats_no_number(burst, clock, monkeypatch, caplog):
    real = returning.return_range

    def fail(*args, **kwargs):
        real(*args, **kwargs)
        raise RuntimeError("the answer to COMMIT was lost")

    monkeypatch.setattr(returning, "return_range", fail)
    wait_a_while(clock)
    assert "'orders' on 'default' were not returned: the answer" in caplog.text
    kept = next_numbers(Order, 4_096)
    assert next_number(Order) > LAST
    assert kept[-1] < LAST
