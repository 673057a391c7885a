"""The next range is there before the last one is used up; never in tests themselves."""

import threading

import pytest

from django_hilo.generator import next_id
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])
on_servers = pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")

START = """
import os, sys, threading
from django.conf import settings
settings.HILO = {**settings.HILO, "MAX_CAPACITY": 32, "PREFETCH_AT": 0.5}
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django_hilo.counters import reservation
from django_hilo.generator import next_id, next_ids, next_number, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from tests.support.patience import wait_until
reserved = []
def receive(reservation, **kwargs):
    reserved.append((threading.current_thread().name, reservation.range.high))
range_reserved.connect(receive)
"""


@on_servers
@pytest.mark.parametrize("ask", ["next_id(Order)", "next_number(Order)"])
def test_nobody_waits(python, ask):
    code = f"""
for number in range(16):
    assert len(reserved) == 1 or number == 0, number
    {ask}
wait_until(lambda: len(reserved) == 2)
with CaptureQueriesContext(connection) as queries:
    for _ in range(32):
        {ask}
assert not queries.captured_queries
wait_until(lambda: len(reserved) == 3)
print(reserved)
"""
    assert python(START + code) == str([("MainThread", 32), ("hilo", 64), ("hilo", 96)])


@on_servers
def test_a_process_that_ends_meanwhile_returns_it(python):
    code = """
reserve_range = reservation.reserve_range
def slow(*args, **kwargs):
    reserved = reserve_range(*args, **kwargs)
    threading.main_thread().join()  # until the process has begun to end
    return reserved
next_id(Order)
reservation.reserve_range = slow
for _ in range(15):
    last = next_id(Order)
assert threading.active_count() == 2
print(last)
"""
    assert python(START + code) == "orders/16-A"
    # The newest range goes back, as ever; what is left of the one before is a gap.
    assert HiLoDocument.objects.get().max == 32


@on_servers
def test_who_runs_out_meanwhile_waits_for_it(python):
    code = """
reserve_range = reservation.reserve_range
begun, go_on = threading.Event(), threading.Event()
def slow(*args, **kwargs):
    begun.set(); go_on.wait()
    return reserve_range(*args, **kwargs)
next_ids(Order, 15)
reservation.reserve_range = slow
next_id(Order)
begun.wait()
next_ids(Order, 16)
threading.Timer(0.1, go_on.set).start()  # late, so that it must wait
with transaction.atomic():
    print(next_id(Order), [name for name, high in reserved])
"""
    assert python(START + code) == "orders/33-A ['MainThread', 'hilo']"


@on_servers
def test_an_error_is_told_once_a_range_and_stops_nobody(python):
    code = """
import logging
class Lines(logging.Handler):
    def emit(self, record): lines.append(record.getMessage())
lines = []
logging.getLogger("django_hilo").addHandler(Lines())
reserve_range = reservation.reserve_range
def fail(*args, **kwargs):
    if threading.current_thread() is threading.main_thread():
        return reserve_range(*args, **kwargs)
    raise OSError("no route")
next_id(Order)
reservation.reserve_range = fail
for _ in range(31):
    next_id(Order)
wait_until(lambda: lines)
assert next_id(Order) == "orders/33-A"
print(lines)
"""
    printed = python(START + code)
    assert printed.count("could not be fetched in advance: no route") == 1


@on_servers
def test_a_fork_meanwhile(python):
    code = """
begun, forking = threading.Event(), threading.Event()
os.register_at_fork(before=forking.set)  # its hooks run before those of django_hilo
reserve_range = reservation.reserve_range
def slow(*args, **kwargs):
    begun.set(); forking.wait()
    return reserve_range(*args, **kwargs)
mine = next_ids(Order, 15)
connections.close_all()
reservation.reserve_range = slow
mine.append(next_id(Order))
begun.wait()
reader, writer = os.pipe()
import warnings; warnings.simplefilter("ignore")
if os.fork() == 0:
    os.write(writer, repr([next_id(Order) for _ in range(40)]).encode())
    os._exit(0)
mine += [next_id(Order) for _ in range(60)]
os.wait()
theirs = eval(os.read(reader, 65536))
assert not set(mine) & set(theirs)
print(len({*mine, *theirs}))
"""
    assert python(START + code) == "116"


@on_servers
def test_an_alias_that_becomes_that_of_another_database(python):
    """A thread that stays must not stay with the database of before."""
    code = """
name = connections["other"].settings_dict["NAME"]
other = {**connections.settings["default"], "NAME": name}
numbers = [next_number(Order) for _ in range(16)]
wait_until(lambda: len(reserved) == 2)
connections.close_all()
connections.settings["default"] = other
del connections["default"]
numbers = [next_number(Order) for _ in range(60)]
wait_until(lambda: len(reserved) == 5)
last = HiLoDocument.objects.get().max
print(numbers == list(range(1, 61)), last)
"""
    assert python(START + code) == "True 96"


@on_servers
def test_receivers_wait_for_no_range_of_others(python):
    code = """
from tests.apps.records.models import Invoice
released = threading.Event()
def wait(reservation, **kwargs):
    if threading.current_thread() is not threading.main_thread():
        if reservation.collection == "orders":
            next_ids(Invoice, 40)
            released.wait()
range_reserved.connect(wait)
next_ids(Order, 16)
for _ in range(100):
    next_id(Invoice)
wait_until(lambda: any(name == "hilo" for name, high in reserved if high > 64))
released.set()
print("went on")
"""
    assert python(START + code) == "went on"


@on_servers
def test_a_start_that_is_broken_off_keeps_no_process_from_ending(python):
    code = """
start = threading.Thread.start
def broken_off(thread):
    start(thread)
    raise KeyboardInterrupt
threading.Thread.start = broken_off
try:
    next_ids(Order, 16)
except KeyboardInterrupt:
    print("broken off")
threading.Thread.start = start
next_ids(Order, 16)
"""
    assert python(START + code) == "broken off"
    # The thread may have fetched its range before the process ended.
    assert HiLoDocument.objects.get().max in {32, 64}


@on_servers
def test_it_opens_no_connection_but_the_processs_own(python):
    code = """
next_ids(Order, 16)
wait_until(lambda: len(reserved) == 2)
from django_hilo._database.own_connection import _own_connections
assert list(_own_connections) == ["default"]
print(HiLoDocument.objects.get().max)
"""
    assert python(START + code) == "64"


def test_not_in_tests(settings):
    settings.HILO = {**settings.HILO, "PREFETCH_AT": 0.1}
    for _ in range(40):
        next_id(Order)
    assert not [each for each in threading.enumerate() if "hilo" in each.name]
    assert HiLoDocument.objects.get().max == 96


@pytest.mark.skipif(CHOSEN != "sqlite", reason="of SQLite")
def test_not_on_sqlite(python):
    code = """
for _ in range(32):
    next_id(Order)
assert threading.active_count() == 1
print(reserved)
"""
    assert python(START + code) == "[('MainThread', 32)]"
