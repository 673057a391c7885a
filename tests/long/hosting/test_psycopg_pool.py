"""Django's pool of psycopg 3: our own connection never waits for one of its few."""

import os

import pytest

from tests.apps.records.models import Order
from tests.long.hosting.sessions import counting
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        CHOSEN != "postgres"
        or os.environ.get("HILO_TEST_POSTGRES_DRIVER") == "psycopg2",
        reason="the pool of psycopg 3",
    ),
]

THREADS = """
import sys, threading
from django.db import connections, transaction
THREADS, EACH = 6, 20
start, keys = threading.Barrier(THREADS), []
def work(mine):
    start.wait()
    try:
        for turn in range(EACH):
            if mine % 2:
                with transaction.atomic():
                    Order.objects.create()
                    keys.append(Order.objects.create().pk)
            else:
                keys.append(Order.objects.create().pk)
            connections["default"].close()  # back to the pool, as after a request
    finally:
        connections["default"].close()
threads = [threading.Thread(target=work, args=(mine,)) for mine in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
connections["default"].close_pool()
print(len(keys), len(set(keys)))
"""


@pytest.mark.parametrize("size", [1, 2])
def test_more_threads_than_connections(site, size):
    pool = {"min_size": 1, "max_size": size, "timeout": PATIENCE}
    with counting() as peak:
        assert site(THREADS, OPTIONS={"pool": pool}) == "120 120"
    assert Order.objects.count() == 3 * 20 + 3 * 40
    assert peak.sessions <= size + 1, "the pool's and one of our own"
