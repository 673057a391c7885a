"""Ids cost no query in a TestCase, be they the first of their counters or not."""

import pytest
from django.db import connection, transaction
from django.test import TestCase, override_settings

from django_hilo.exceptions import TableMissing
from django_hilo.generator import next_id, next_ids, next_number
from django_hilo.models import HiLoDocument, ServerPrefix
from tests.apps.numbers.models import Box, Item, Tag
from tests.apps.records.models import Letter, Order, Plain, Product
from tests.support.databases import IS_MYSQL
from tests.support.sql import execute

pytestmark = pytest.mark.servers

TEXTS = [Order, Product, Plain]
INTEGERS = [Item, Box, Tag]


class TestCreate(TestCase):
    def test_is_one_query_first_or_not(self):
        for model in TEXTS + INTEGERS:
            for _ in range(3):
                with self.subTest(model=model), self.assertNumQueries(1):
                    model.objects.create()
                Box.objects.all().delete()  # its label is unique

    def test_again_in_the_next_test(self):
        self.test_is_one_query_first_or_not()

    def test_beyond_the_first_range(self):
        with self.assertNumQueries(100):
            for _ in range(100):
                Order.objects.create()
        with self.assertNumQueries(100):
            for _ in range(100):
                Item.objects.create()

    def test_many_at_once(self):
        with self.assertNumQueries(1):
            Order.objects.bulk_create([Order() for _ in range(200)])
        with self.assertNumQueries(1):
            Item.objects.bulk_create([Item() for _ in range(200)])
        with self.assertNumQueries(1):
            Plain.objects.bulk_create([Plain() for _ in range(3)])

    def test_ids_alone_cost_nothing(self):
        with self.assertNumQueries(0):
            next_id(Order), next_ids(Product, 100), next_number("tickets")
            next_number(Item)
            Order.objects.assign_ids([Order() for _ in range(50)])

    def test_when_debug_is_on(self):
        with override_settings(DEBUG=True), self.assertNumQueries(1):
            Order.objects.create()

    def test_execute_wrappers_see_what_is_counted(self):
        seen = []

        def note(execute, sql, *args):
            seen.append(sql.split()[0])
            return execute(sql, *args)

        with connection.execute_wrapper(note):
            Order.objects.create()
            Item.objects.create()
        assert seen == ["INSERT", "INSERT"]

    def test_gapless_numbers_stay_real(self):
        Letter.objects.create()
        assert execute("SELECT last FROM django_hilo_gaplesscounter") == [(1,)]


class TestExplicitIds(TestCase):
    def test_are_one_query(self):
        for id in "orders/9-A", "orders/500-A", "orders/7-A":
            with self.assertNumQueries(1):
                Order.objects.create(pk=id)
        assert Order.objects.create().pk == "orders/501-A"
        for number in 9, 500, 7:
            with self.assertNumQueries(1):
                Item.objects.create(pk=number)
        assert Item.objects.create().pk not in (7, 9, 500)

    def test_after_others(self):
        Order.objects.create(), Item.objects.create()
        with self.assertNumQueries(2):
            Order.objects.create(pk="orders/2-A")
            Item.objects.create(pk=10**6)
        assert Order.objects.create().pk != "orders/2-A"
        # A sequence may go on under it.
        assert Item.objects.create().pk != 10**6

    def test_their_floor_is_seen(self):
        Order.objects.create(pk="orders/500-A")
        row = HiLoDocument.objects.get()
        assert (row.max, row.floor, row.size) == (500, 500, 0)


@pytest.mark.skipif(IS_MYSQL, reason="ALTER TABLE commits")
class TestWithoutOurTables(TestCase):
    def setUp(self):
        for model in HiLoDocument, ServerPrefix:
            table = model._meta.db_table
            execute(f"ALTER TABLE {table} RENAME TO {table}_away")

    def test_the_transaction_survives_the_error(self):
        with pytest.raises(TableMissing, match="migrate django_hilo"):
            Order.objects.create()
        assert Order.objects.count() == 0
        with transaction.atomic(), pytest.raises(TableMissing):
            Order.objects.create()
        assert Order.objects.count() == 0
