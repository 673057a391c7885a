from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections, transaction

from django_hilo.exceptions import (
    CounterExhausted,
    InvalidDocumentId,
    ReservationTimeout,
)
from django_hilo.gapless import next_gapless_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter
from tests.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_numbers_follow_each_other_whatever_the_case():
    assert [next_gapless_number(name) for name in ("invoices", "Invoices")] == [1, 2]
    assert next_gapless_number("orders") == 1


def test_a_rollback_gives_the_number_back():
    next_gapless_number("invoices")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert next_gapless_number("invoices") == 2
        raise ZeroDivisionError
    assert next_gapless_number("invoices") == 2


def test_each_database_counts_for_itself():
    assert next_gapless_number("invoices") == 1
    assert next_gapless_number("invoices", "other") == 1


def test_the_last_number_is_2_63_minus_1():
    GaplessCounter.objects.create(collection="invoices", last=MAX_NUMBER - 1)
    assert next_gapless_number("invoices") == MAX_NUMBER
    with pytest.raises(CounterExhausted, match="'invoices'"):
        next_gapless_number("invoices")


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_first_callers_at_once_get_the_numbers_one_by_one():
    barrier = Barrier(6)

    def first(_):
        barrier.wait()
        try:
            return next_gapless_number("letters")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as executor:
        for _ in range(5):
            assert sorted(executor.map(first, range(6))) == [1, 2, 3, 4, 5, 6]
            GaplessCounter.objects.all().delete()


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_it_waits_no_longer_than_the_lock_timeout(settings):
    settings.HILO = {"LOCK_TIMEOUT": 1}
    next_gapless_number("letters")

    def other():
        try:
            with pytest.raises(ReservationTimeout, match="'letters'"):
                next_gapless_number("letters")
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as executor:
        next_gapless_number("letters")
        executor.submit(other).result(timeout=60)
    assert next_gapless_number("letters") == 3


@pytest.mark.skipif(CHOSEN != "postgres", reason="of PostgreSQL")
def test_a_callers_own_lock_timeout_comes_back():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '77s'")
        next_gapless_number("letters")
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("77s",)


def test_a_bad_collection_makes_no_row():
    with pytest.raises(InvalidDocumentId):
        next_gapless_number("7up")
    assert not GaplessCounter.objects.exists()
