"""What `make torture` found, each reduced to the steps that it takes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo.exceptions import RangeNotReturned
from django_hilo.generator import next_number, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.reservation import read_max, reserve, return_range
from tests.records.models import Order

transactional = pytest.mark.django_db(transaction=True)


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@transactional
def test_a_floor_outlives_a_rollback_to_a_later_savepoint_of_ones_own(new_process):
    with transaction.atomic():
        Order.objects.create(id="orders/500-A")
        execute("SAVEPOINT mine")
        execute("ROLLBACK TO SAVEPOINT mine")
    assert Order.objects.filter(pk="orders/500-A").exists()
    assert read_max("orders") >= 500
    new_process()
    assert next_number(Order) > 500


@transactional
def test_a_floor_outlives_it_where_the_transaction_took_a_range_too(new_process):
    with transaction.atomic():
        Order.objects.create()
        with transaction.atomic():
            Order.objects.create(id="orders/500-A")
        execute("SAVEPOINT mine")
        Order.objects.create(id="orders/600-A")
        execute("ROLLBACK TO SAVEPOINT mine")
    new_process()
    assert next_number(Order) > 500


class _Failing:
    """Lets a caller's transaction read no counter, as a serialization failure does."""

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        if "hilodocument" in sql:
            with connection.cursor() as cursor:
                cursor.execute("SELECT * FROM no_such_table")
        return execute(sql, *rest)


@transactional
@pytest.mark.skipif(connection.vendor == "sqlite", reason="one connection for all")
def test_a_return_asks_nothing_of_the_callers_transaction():
    """A failed query there would be swallowed, and PostgreSQL's COMMIT roll back."""
    next_number(Order)
    with transaction.atomic():
        order = Order.objects.create()
        with connection.execute_wrapper(_Failing()):
            assert return_ranges() == 1
    assert Order.objects.filter(pk=order.pk).exists()


@transactional
@pytest.mark.skipif(connection.vendor == "sqlite", reason="one connection for all")
def test_a_return_sees_a_counter_that_is_newer_than_the_callers_snapshot():
    isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    if connection.vendor == "mysql":
        execute(isolation)  # of the next transaction
    with transaction.atomic():
        if connection.vendor == "postgresql":
            execute(isolation)
        assert not HiLoDocument.objects.filter(collection="orders").exists()
        lent = reserve("orders", 10)
        assert return_range("orders", 10, 3, lent.ticket) == 3


@transactional
def test_a_return_to_no_counter_makes_none():
    with pytest.raises(RangeNotReturned, match="There is no counter 'orderz/A'"):
        return_range("orderz", 10, 3, "ticket")
    assert not HiLoDocument.objects.exists()
