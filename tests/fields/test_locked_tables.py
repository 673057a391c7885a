"""Integer keys while a transaction has locked their table or sequence."""

import time

import pytest
from django.db import connection, transaction

from django_hilo._allocation import memory
from django_hilo.exceptions import ReservationTimeout
from django_hilo.generator import next_number
from tests.apps.numbers.models import Item
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.sql import execute
from tests.support.threads import begin

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's locks"),
]
LOCK = "LOCK TABLE numbers_item IN ACCESS EXCLUSIVE MODE"
WAITING = """
    SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'numbers_item'::regclass
"""


def wait_until(happens):
    until = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.01)


@pytest.fixture
def blocked():
    """Another thread makes the first reservation, and waits for this one's table."""
    memory.current().forget("default")
    with transaction.atomic():
        execute(LOCK)
        end = begin(lambda: next_number(Item))
        wait_until(lambda: execute(WAITING))
        yield
    assert end() > 0


def test_the_thread_that_has_the_table_waits_for_nobody(blocked):
    mine = next_number(Item)
    assert execute(WAITING)  # it still does
    assert mine > 0


def test_the_other_waits_no_longer_than_the_lock_timeout(settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.2}
    memory.current().forget("default")
    with transaction.atomic():
        execute(LOCK)
        end = begin(lambda: next_number(Item))
        with pytest.raises(ReservationTimeout, match="TRUNCATE"):
            end()
    assert next_number(Item) > 0


def test_a_sequence_that_the_caller_has_restarted(settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.2}
    Item.objects.create()
    memory.current().forget("default")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE numbers_item RESTART IDENTITY CASCADE")
        with pytest.raises(ReservationTimeout, match="TRUNCATE ... RESTART IDENTITY"):
            Item.objects.create()
    assert Item.objects.create().pk == 1
