"""No test of a TestCase leaves numbers to another one; threads beside it get others."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import call_command
from django.db import IntegrityError, connections, transaction
from django.test import TestCase

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.in_tests import InMemorySource
from django_hilo._database.identity import database_key
from django_hilo.counters import Range, Reservation
from django_hilo.generator import anext_id, anext_ids, next_id, next_ids, next_number
from django_hilo.models import HiLoDocument
from django_hilo.testing import write_counters
from tests.apps.numbers.models import Box, Item
from tests.apps.records.models import Order, Product
from tests.support.databases import CHOSEN
from tests.support.sql import execute
from tests.support.threads import begin

pytestmark = pytest.mark.servers


class TestEachTest(TestCase):
    def test_one(self):
        assert Order.objects.create().pk == "orders/1-A"
        Order.objects.create(pk="orders/500-A")
        HiLoDocument.objects.create(collection="products", node_tag="A", max=96)
        assert Product.objects.create().pk == "products/97-A"
        if CHOSEN != "postgres":  # as those of BigAutoField, which rise
            assert Item.objects.create().pk == 1
        Item.objects.create(pk=7000)

    def test_two(self):
        assert Order.objects.create().pk == "orders/1-A"
        assert Product.objects.create().pk == "products/1-A"
        if CHOSEN != "postgres":
            assert Item.objects.create().pk == 1

    def test_zero(self):
        self.test_two()
        self.test_one_more()

    def test_one_more(self):
        """Rows that came before the first number do not count for the others."""
        Item.objects.create(pk=7000)
        Box.objects.bulk_create([Box(label="a", pk=7000)])
        assert Item.objects.create().pk != 7000
        assert Box.objects.create(label="b").pk != 7000

    def test_three(self):
        number = Box.objects.create(label="a").pk
        assert CHOSEN == "postgres" or number == 1


class TestAfterItsClass(TestCase):
    databases = ("default", "other")

    @classmethod
    def setUpTestData(cls):
        cls.order = Order.objects.create()
        cls.kept = next_ids(Order, 2)
        cls.number = next_number("tickets")
        cls.product = Product.objects.using("other").create()
        HiLoDocument.objects.create(collection="users", node_tag="A", max=96)

    def check(self):
        assert self.order.pk == "orders/1-A"
        assert Order.objects.create().pk == "orders/4-A"
        assert next_number("tickets") == self.number + 1 == 2
        assert Product.objects.using("other").create().pk == "products/2-B"
        assert Product.objects.create().pk == "products/1-A"
        assert next_id("users") == "users/97-A"

    def test_one(self):
        self.check()

    def test_two(self):
        self.check()
        assert HiLoDocument.objects.get(pk="orders/A").max == 32
        assert HiLoDocument.objects.using("other").get().max == 32
        HiLoDocument.objects.update(max=900)

    def test_three(self):
        HiLoDocument.objects.all().delete()
        memory.current().forget("default")  # as after an administrator's change
        assert next_id(Order) == "orders/1-A"

    def test_four(self):
        memory.current().forget("default")
        self.check()
        memory.current().forget("default")
        assert next_id(Order) == "orders/33-A"

    def test_threads_and_the_rest(self):
        self.check()


class TestObjectsAgain(TestCase):
    def test_after_an_inner_rollback(self):
        order, item = Order(), Item()
        with transaction.atomic():
            order.save(), item.save()
            transaction.set_rollback(True)
        id, number = order.pk, item.pk
        assert Order.objects.create().pk == "orders/2-A"
        order.save(), item.save()
        assert (order.pk, item.pk) == (id, number) == ("orders/1-A", number)
        assert Order.objects.count() == 2
        assert Item.objects.get().pk == number

    def test_after_an_error_of_the_key(self):
        item = Item.objects.create()
        taken = Item(name="again")
        with (
            patch.object(
                Item._meta.pk.ids, "take_ids", return_value=([item.pk], [None])
            ),
            pytest.raises(IntegrityError),
            transaction.atomic(),
        ):
            taken.save()
        taken.save()
        assert taken.pk != item.pk
        assert Item.objects.count() == 2


class TestHooks(TestCase):
    def test_none_is_captured(self):
        with self.captureOnCommitCallbacks(execute=True) as called:
            Order.objects.create(), Item.objects.create()
            Order.objects.create(pk="orders/9000-A"), Item.objects.create(pk=9000)
            assert HiLoDocument.objects.get(pk="orders/A").max == 9000
        assert called == []
        assert next_id(Order) == "orders/9001-A"

    def test_a_patched_on_commit(self):
        def at_once(act, *args, **kwargs):
            act()

        with (
            patch("django.db.transaction.on_commit", at_once),
            patch.object(connections["default"], "on_commit", at_once),
        ):
            assert Order.objects.create().pk == "orders/1-A"
            Order.objects.create(pk="orders/9000-A")
            Item.objects.create()
        assert next_id(Order) == "orders/9001-A"


class AfterTestsThatCommit(TestCase):
    @classmethod
    def setUpClass(cls):
        # What they may leave in memory.
        key = database_key("default"), "orders", "A"
        held = CachedRange(Reservation("orders", "A", Range(700, 800), "", "t"))
        memory.current().memory(key).add([held], 32)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        memory.current().forget("default")


class TestTheirRanges(AfterTestsThatCommit):
    def test_are_gone(self):
        assert next_id(Order) == "orders/1-A"


class TestRowsThatTestsChange(TestCase):
    """What a test does to rows before its first key does not count for the next."""

    @classmethod
    def setUpTestData(cls):
        values = ", ".join(f"({key}, 'b{key}', '')" for key in (1, 2, 3))
        execute(f"INSERT INTO numbers_box (id, label, text) VALUES {values}")

    def check(self):
        key = Box.objects.create(label="new").pk
        assert CHOSEN == "postgres" or key == 4

    def test_a_row_that_is_deleted(self):
        Box.objects.filter(pk=3).delete()
        Box.objects.create(label="new")

    def test_a_row_that_is_moved(self):
        Box.objects.filter(pk=3).update(id=900)
        assert Box.objects.create(label="new").pk != 900

    def test_an_untouched_one(self):
        self.check()

    def test_before_all(self):
        self.check()

    def test_zero(self):
        self.check()


class TestAsync(AfterTestsThatCommit):
    async def check(self):
        assert (await Order.objects.acreate()).pk == "orders/1-A"
        assert await anext_id(Order) == "orders/2-A"
        assert await anext_ids(Order, 2) == ["orders/3-A", "orders/4-A"]
        assert await sync_to_async(next_id)(Order) == "orders/5-A"
        assert await Order.objects.anext_id() == "orders/6-A"

    async def test_one(self):
        await self.check()

    async def test_two(self):
        await self.check()

    def test_sync(self):
        async_to_sync(self.check)()
        assert next_id(Order) == "orders/7-A"


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
class BesideThreads(TestCase):
    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for model in Order, Product, Item, HiLoDocument:
            model.objects.all().delete()
        memory.current().forget("default")


class TestRangesOfThreads(BesideThreads):
    def test_their_ranges_are_committed(self):
        """Later classes start above them, unless the test takes the ids."""

        def committed():
            return list(HiLoDocument.objects.filter(pk="orders/A").values_list("max"))

        orders = [Order(), Order()]
        Order.objects.assign_ids(orders)
        begin(orders[0].save)()
        assert begin(committed)() == []
        begin(Order().save)()
        assert begin(committed)() == [(64,)]


class TestThreads(BesideThreads):
    """A thread that inserted a number of the test would wait for the test's end."""

    @classmethod
    def setUpTestData(cls):
        Product.objects.create(), Item.objects.create()

    def test_get_other_numbers(self):
        mine = [Order.objects.create() for _ in range(40)]
        numbers = [Item.objects.create().pk for _ in range(3)]

        def create():
            return [
                *(Order.objects.create().pk for _ in range(3)),
                *(Product.objects.create().pk for _ in range(3)),
                *(Item.objects.create().pk for _ in range(3)),
            ]

        theirs = begin(create)()
        mine += [Order.objects.create() for _ in range(100)]
        assert not {each.pk for each in mine} & set(theirs)
        assert not set(numbers) & set(theirs)
        assert "products/1-A" not in theirs
        next_ids(Order, 1000)

    def test_two_that_share_its_connection_get_no_number_twice(self):
        """The second asks when the first has a range, but does not hold it yet."""
        shared, ends = connections["default"], []

        def ask():
            connections["default"] = shared
            try:
                return next_id(Order)
            finally:
                del connections["default"]  # or the thread's end would close it

        def meanwhile(source, using, wanted):
            reserved = reserve(source, using, wanted)
            if not ends:
                ends.append(begin(ask))
                time.sleep(0.3)
            return reserved

        reserve = InMemorySource.reserve
        shared.inc_thread_sharing()
        with patch.object(InMemorySource, "reserve", meanwhile):
            given = [next_id(Order), ends[0]()]
        shared.dec_thread_sharing()
        given += [next_id(Order) for _ in range(60)]
        assert len(set(given)) == 62


class TestFixtures(TestCase):
    def test_loaded_rows_are_explicit(self):
        Order.objects.create()
        write_counters()
        Order.objects.create(pk="orders/40-A")
        with TemporaryDirectory() as folder:
            path = Path(folder) / "all.json"
            call_command("dumpdata", "records.order", "django_hilo", output=str(path))
            Order.objects.all().delete()
            call_command("loaddata", path, verbosity=0)
        assert Order.objects.count() == 2
        assert next_id(Order) == "orders/41-A"
