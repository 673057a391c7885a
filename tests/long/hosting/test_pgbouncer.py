"""PgBouncer in transaction mode: sessions are shared, and one may not be enough."""

import sys

import pytest
from django.db import connections

from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.long.hosting.pgbouncer import PgBouncer, pgbouncer
from tests.long.hosting.sessions import counting
from tests.support.databases import CHOSEN

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN != "postgres", reason="a pooler of PostgreSQL"),
]

GUNICORN = (
    *(sys.executable, "-m", "gunicorn", "tests.long.hosting.wsgi"),
    *("--bind=127.0.0.1:PORT", "--workers=2", "--threads=3"),
)
# What PgBouncer itself keeps apart for each of its clients.
TRACKED = {
    *("application_name", "client_encoding", "DateStyle", "TimeZone"),
    "standard_conforming_strings",
}


def left_on_each_session(bouncer: PgBouncer, count: int) -> list[set[str]]:
    """Return the variables that were set for good, for so many sessions at once."""
    clients = []
    for _ in range(count):
        client = connections["default"].copy()
        client.settings_dict.update(bouncer.entry)
        client.set_autocommit(False)  # in a transaction it has a session to itself
        clients.append(client)
    left = []
    pids = set()
    for client in clients:
        with client.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids |= set(cursor.fetchone())
            cursor.execute("SELECT name FROM pg_settings WHERE source = 'session'")
            left.append({name for (name,) in cursor.fetchall()})
    for client in clients:
        client.rollback()
        client.close()
    assert len(pids) == count, f"{len(pids)} sessions were looked at, not {count}"
    return left


@pytest.mark.parametrize("age", [0, None])
def test_many_share_few_sessions(serve, age):
    """One for each transaction that is open at once, and one per process."""
    enough = 2 * (3 + 1)
    with counting() as peak, pgbouncer(default_pool_size=enough) as bouncer:
        server = serve(
            *GUNICORN,
            DATABASE={**bouncer.entry, "CONN_MAX_AGE": age, "ATOMIC_REQUESTS": True},
            HILO={"SYNCHRONOUS_COMMIT": "local"},
        )
        server.ask_until_processes_overlap(203)
        assert server.stop() == 0, server.log
        for variables in left_on_each_session(bouncer, enough):
            assert variables <= TRACKED

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
    assert peak.sessions <= enough


IN_ATOMIC = """
from django.db import transaction
from django_hilo.exceptions import HiLoError
with transaction.atomic():
    Order.objects.create(id="kept")
    try:
        print(Order.objects.create().pk)
    except HiLoError as error:
        print(type(error).__name__, error)
"""


def test_one_session_for_a_transaction_and_its_reservation(site):
    """An error, soon after PgBouncer's own patience; no range of the transaction."""
    with pgbouncer(default_pool_size=1, query_wait_timeout=1) as bouncer:
        answer = site(IN_ATOMIC, DATABASE=bouncer.entry, HILO={"RETRY_FOR": 0.5})
        outside = site("print(Order.objects.create().pk)", DATABASE=bouncer.entry)
    assert answer.startswith("ConcurrencyError")
    assert "RETRY_FOR" in answer
    assert "PgBouncer" in answer, answer
    assert outside == "orders/1-A"
    assert set(Order.objects.values_list("pk", flat=True)) == {"kept", outside}
    assert HiLoDocument.objects.get().max == 1


def test_a_pool_for_the_counters(site):
    """The home database is the same one under another name of PgBouncer's."""
    with pgbouncer(default_pool_size=1) as bouncer:
        counters = {**bouncer.entry, "NAME": bouncer.counters}
        answer = site(
            IN_ATOMIC,
            DATABASE=bouncer.entry,
            HILO={"DATABASE": "counters"},
            OTHERS={"counters": counters},
        )
    assert answer == "orders/1-A"


PROCESSES, ROWS, POOL = 34, 10, 10
IN_MANY = f"""
import multiprocessing
from django.db import connections, transaction
connections.close_all()
context = multiprocessing.get_context("fork")
barrier, full = context.Barrier({PROCESSES}), context.Barrier({POOL})
def work(place):
    barrier.wait()
    for row in range({ROWS}):
        with transaction.atomic():
            if row == 0 and place < {POOL}:
                Order.objects.count()
                full.wait()  # all of the pool is in transactions
            Order.objects.create()
started = [context.Process(target=work, args=[n]) for n in range({PROCESSES})]
for each in started: each.start()
for each in started: each.join()
print(sum(each.exitcode != 0 for each in started))
"""


def test_more_processes_in_transactions_than_the_pool_has_sessions(site):
    with counting() as peak, pgbouncer(default_pool_size=POOL) as bouncer:
        failed = site(
            IN_MANY,
            DATABASE=bouncer.entry,
            HILO={"DATABASE": "counters", "CAPACITY": 2, "MAX_CAPACITY": 2},
            OTHERS={"counters": {**bouncer.entry, "NAME": bouncer.counters}},
        )
    assert failed == "0"
    assert Order.objects.count() == PROCESSES * ROWS
    assert POOL < peak.sessions <= POOL + 2
