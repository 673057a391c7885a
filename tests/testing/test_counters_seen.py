"""Whoever looks at a counter in a TestCase sees it as a reservation leaves it."""

from hashlib import sha256

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists
from django.test import TestCase, override_settings

from django_hilo import generator
from django_hilo.counters import read_max, reserve, return_range
from django_hilo.exceptions import RangeNotReturned
from django_hilo.generator import anext_id, anext_ids, next_id, next_ids, next_number
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import range_reserved
from django_hilo.testing import write_counters
from tests.apps.numbers.models import Box, Item
from tests.apps.records.models import Order, Product
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = pytest.mark.servers


def columns(row: HiLoDocument) -> tuple[int, ...]:
    return row.max, row.floor, row.low, row.size


class TestLooks(TestCase):
    def test_at_the_row(self):
        Order.objects.create()
        row = HiLoDocument.objects.get()
        assert (row.pk, *columns(row)) == ("orders/A", 32, 0, 1, 32)
        assert len(row.ticket) == 32
        assert row.reserved_at is not None
        next_ids(Order, 32)
        assert columns(HiLoDocument.objects.get()) == (96, 0, 33, 64)

    def test_is_one_query(self):
        Order.objects.create()
        with self.assertNumQueries(1):
            HiLoDocument.objects.get()

    def test_at_a_floor(self):
        for model in Order, Item:
            start = next_number(model) + 999
            generator.raise_floor(model, start)
            assert next_number(model) == start + 1
            assert model.objects.create().pk in (start + 2, f"orders/{start + 2}-A")
        assert HiLoDocument.objects.get(pk="orders/A").floor == 1000

    def test_without_ids_there_is_no_row(self):
        assert not HiLoDocument.objects.exists()
        assert read_max("orders") == 0

    def test_by_other_ways(self):
        Order.objects.create()
        assert read_max("orders") == 32
        row = HiLoDocument.objects.get()
        next_ids(Order, 40)
        row.refresh_from_db()
        assert row.max == 96
        next_ids(Order, 100)
        row.collection = "orders"
        row.max = 1000
        row.save()
        assert HiLoDocument.objects.get().max == 1000
        assert HiLoDocument.objects.filter(max=1000).update(floor=5) == 1

    def test_after_an_inner_rollback(self):
        Order.objects.create()
        for _ in range(2):
            with transaction.atomic():
                assert HiLoDocument.objects.get().max == 32
                transaction.set_rollback(True)
            assert HiLoDocument.objects.get().max == 32
        assert HiLoDocument.objects.count() == 1

    def test_after_a_rollback_of_what_the_test_wrote(self):
        Order.objects.create()
        with transaction.atomic():
            HiLoDocument.objects.update(max=1000)
            assert HiLoDocument.objects.get().max == 1000
            transaction.set_rollback(True)
        assert HiLoDocument.objects.get().max == 32

    def test_a_deleted_row_stays_away(self):
        Order.objects.create()
        HiLoDocument.objects.all().delete()
        assert not HiLoDocument.objects.exists()

    def test_by_a_queryset_that_was_made_before(self):
        rows = HiLoDocument.objects.filter(pk="orders/A")
        others = Order.objects.filter(Exists(rows))
        Order.objects.create()
        assert others.count() == 1
        next_ids(Order, 100)
        assert [row.max for row in rows] == [rows.get().max] != [32]
        rows.update(max=500)
        assert "orders/532-A" in next_ids(Order, 400)
        later = HiLoDocument.objects.all()
        next_id(Product)
        later.delete()
        assert not HiLoDocument.objects.exists()

    def test_by_sql_after_a_call(self):
        Order.objects.create()
        sql = "SELECT max(low) FROM django_hilo_hilodocument"
        assert execute(sql) == [(None,)]
        write_counters()
        assert execute(sql) == [(1,)]

    def test_while_a_transaction_is_broken(self):
        Order.objects.create()
        with transaction.atomic():
            transaction.set_rollback(True)
            HiLoDocument.objects.all()
        assert HiLoDocument.objects.get().max == 32

    def test_receivers_hear_of_the_range(self):
        heard = []
        listen = lambda reservation, **facts: heard.append(reservation)  # noqa: E731
        range_reserved.connect(listen)
        self.addCleanup(range_reserved.disconnect, listen)
        next_ids(Order, 33)
        assert [(each.range.low, each.range.high) for each in heard] == [(1, 33)]
        assert HiLoDocument.objects.get().ticket == heard[0].ticket


class TestWrites(TestCase):
    """What a test writes itself holds for the next id."""

    def test_a_counter_of_the_test(self):
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=96)
        assert next_id(Order) == "orders/97-A"

    def test_none_is_left_to_this_one(self):
        assert next_id(Order) == "orders/1-A"

    def test_another_counter_after_the_first_id(self):
        assert next_id(Order) == "orders/1-A"
        HiLoDocument.objects.create(collection="products", node_tag="A", max=96)
        assert next_id(Product) == "products/97-A"

    def test_max_holds_from_the_next_range_on(self):
        ids = next_ids(Order, 32)
        HiLoDocument.objects.update(max=500)
        assert ids[-1] == "orders/32-A"
        assert next_id(Order) == "orders/501-A"

    def test_a_server_prefix(self):
        prefix = ServerPrefix(node_tag="A", prefix="North/")
        prefix.save()
        assert next_id(Order) == "orders/North/1-A"

    def test_settings(self):
        assert next_id(Order) == "orders/1-A"
        with override_settings(HILO={"NODE_TAG": "C", "SEPARATOR": ":"}):
            assert next_id(Order) == "orders:1-C"
        with override_settings(HILO={"CAPACITY": 5}):
            next_id(Product)
        assert HiLoDocument.objects.get(pk="products/A").max == 5
        assert next_id(Order) == "orders/2-A"


class TestReservations(TestCase):
    """Real ones go on from the numbers of the test, and it from theirs."""

    def test_reserve(self):
        assert next_id(Order) == "orders/1-A"
        made = reserve("orders", 10)
        assert made.range.low == 33
        assert return_range("orders", made.range.high, 35, made.ticket) == 35
        assert next_ids(Order, 32)[-1] == "orders/36-A"

    def test_the_range_of_the_test_may_be_returned(self):
        next_id(Order)
        row = HiLoDocument.objects.get()
        assert return_range("orders", 32, 1, row.ticket) == 1
        with pytest.raises(RangeNotReturned):
            return_range("orders", 32, 1, row.ticket)


class TestFaces(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.boss = User.objects.create_superuser("boss", password="secret")

    def setUp(self):
        self.client.force_login(self.boss)
        assert Order.objects.create().pk == "orders/1-A"

    def test_rest(self):
        address = "/hilo/documents/orders/A/"
        assert self.client.get(address).json()["max"] == 32
        answer = self.client.patch(
            address, {"max": 500}, content_type="application/json"
        )
        assert answer.json()["max"] == 500
        assert next_ids(Order, 32)[-1] == "orders/501-A"
        ids = self.client.post("/hilo/collections/orders/next-id/").json()["ids"]
        assert ids == ["orders/502-A"]

    def test_ravendb(self):
        token = sha256(b"open").hexdigest()
        settings = {"RAVENDB_DATABASES": {"shop": "default"}, "RAVENDB_TOKENS": [token]}
        with override_settings(HILO=settings):
            answer = self.client.get("/raven/open/databases/shop/hilo/next?tag=orders")
        assert (answer.json()["Low"], answer.status_code) == (33, 201), answer.json()


@pytest.mark.skipif(CHOSEN != "sqlite", reason="rows share numbers with the default")
class TestTheDefaultOfAKey(TestCase):
    def test_rows_of_a_plain_manager(self):
        assert Box.objects.create(label="first").pk == 1
        with self.assertNumQueries(1):
            Box.objects.bulk_create([Box(label="second")])
        # Over the range in memory, and over what tests that committed have left.
        assert Box.objects.get(label="second").pk > 32
        assert Box.objects.create(label="third").pk == 2

    def test_a_number_that_was_taken_first(self):
        box = Box(label="mine")
        box.pk = Box._meta.pk.ids.take_ids(1, "default")[0][0]
        Box.objects.bulk_create([Box(label="other")])
        box.save(force_insert=True)
        assert Box.objects.count() == 2

    def test_no_row_counts_for_the_next_test(self):
        assert Box.objects.create(label="first").pk == 1

    def test_sql_after_a_call(self):
        assert Item.objects.create().pk == 1
        write_counters()
        execute("INSERT INTO numbers_item (name) VALUES ('by SQL')")
        assert Item.objects.get(name="by SQL").pk > 32


class TestLooksOfCoroutines(TestCase):
    """They look in another thread than they run in."""

    async def check(self):
        assert (await Order.objects.acreate()).pk == "orders/1-A"
        assert await HiLoDocument.objects.acount() == 1
        assert [row.max async for row in HiLoDocument.objects.all()] == [32]
        await HiLoDocument.objects.aupdate(max=500)
        assert "orders/532-A" in await anext_ids(Order, 100)
        row = HiLoDocument(id="products/A", collection="products", node_tag="A", max=96)
        await HiLoDocument.objects.abulk_create([row])
        assert await anext_id(Product) == "products/97-A"
        row = HiLoDocument(collection="users", node_tag="A", max=96)
        await row.asave()
        assert await anext_id("users") == "users/97-A"
        await HiLoDocument.objects.all().adelete()
        assert not await HiLoDocument.objects.aexists()

    async def test_one(self):
        await self.check()

    async def test_two(self):
        await self.check()
