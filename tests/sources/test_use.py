"""Fields, collections and programs that draw from counters of other systems."""

import json
from hashlib import sha256
from itertools import islice
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps
from rest_framework.test import APIClient

from django_hilo._allocation.find import resolve
from django_hilo._operations.known_counters import known_gapless_counter
from django_hilo._operations.lending import lend
from django_hilo.checks.fields import check_field
from django_hilo.exceptions import CounterExhausted, HiLoError, RangeNotLent
from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.generator import (
    aiter_ids,
    anext_number,
    anext_numbers,
    iter_ids,
    next_id,
    next_ids,
    next_number,
    next_numbers,
    return_ranges,
)
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from django_hilo.sources import ForeignCounter, database, hibernate
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support import foreign
from tests.support.databases import CHOSEN
from tests.support.foreign import (
    drawn,
    needs_postgresql,
    needs_sequences,
    next_value,
    partner,
    stored,
)
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make

SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}
HILO = hibernate.HiLo(9)
LAST_USED = hibernate.PooledLo(50, **SEGMENT)


def named(settings, **sources: object) -> None:
    settings.HILO = {"NODE_TAG": {"default": "A", "other": "B"}, "SOURCES": sources}


def stored_hi() -> int:
    return int(stored("next_hi FROM hibernate_unique_key"))


@pytest.fixture
def unique_key(make, new_process) -> None:
    new_process()
    make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (1)")


@pytest.fixture
def segments(make, new_process) -> None:
    new_process()
    make(foreign.SEGMENTS)


@pytest.mark.usefixtures("unique_key")
class TestCollections:
    @pytest.fixture(autouse=True)
    def sources(self, settings) -> None:
        named(settings, Orders=HILO, numbers_item=HILO)

    def test_ids_carry_no_tag(self):
        assert Order.objects.create().pk == "orders/10"
        assert next_id("orders") == "orders/11"
        assert next_id("records.Order", anchor="x") == "orders/12$x"
        assert next_number(Order) == 13
        assert Order.objects.next_ids(2) == ["orders/14", "orders/15"]
        orders = Order.objects.bulk_create([Order(), Order()])
        assert [order.pk for order in orders] == ["orders/16", "orders/17"]
        assert not HiLoDocument.objects.exists()

    def test_integer_keys(self):
        assert Item.objects.create().pk == 10
        assert next_id("numbers.Item") == 11
        assert [item.pk for item in Item.objects.bulk_create([Item(), Item()])] == [
            12,
            13,
        ]

    def test_both_draw_from_one_range(self):
        assert Item.objects.create().pk == 10
        assert Order.objects.create().pk == "orders/11"
        assert stored_hi() == 5

    def test_a_new_object_costs_one_statement(self):
        Order.objects.create()
        with CaptureQueriesContext(connection) as queries:
            Order.objects.create()
        assert [query["sql"][:6] for query in queries] == ["INSERT"]

    def test_an_explicit_id_raises_the_counter(self, new_process):
        Order.objects.create(pk="orders/700")
        assert stored_hi() >= 71
        new_process()
        assert Order.objects.create().pk == "orders/710"
        Item.objects.create(pk=1234)
        new_process()
        assert Item.objects.create().pk > 1234

    def test_an_explicit_id_inside_the_own_range_is_passed_over(self):
        assert Order.objects.create().pk == "orders/10"
        Order.objects.create(pk="orders/15")
        keys = [Order.objects.create().pk for _ in range(40)]
        assert "orders/15" not in keys
        assert len(set(keys)) == 40

    def test_nothing_is_returned(self):
        Order.objects.create()
        before = stored_hi()
        assert return_ranges() == 0
        assert stored_hi() == before
        assert Order.objects.create().pk == f"orders/{before * 10}"

    def test_a_field_knows_its_source(self):
        with isolate_apps("tests.apps.numbers"):

            class Bolt(models.Model):
                id = HiLoBigAutoField(primary_key=True, source=HILO)

                class Meta:
                    app_label = "numbers"

            assert next_number(Bolt) == 10
            assert next_number(Item) == 11


@pytest.mark.usefixtures("unique_key")
class TestLending:
    @pytest.fixture(autouse=True)
    def named(self, settings) -> None:
        settings.HILO = {
            **settings.HILO,
            "SOURCES": {"orders": HILO},
            "RAVENDB_DATABASES": {"shop": "default"},
            "RAVENDB_TOKENS": [sha256(b"sesame").hexdigest()],
        }

    @pytest.fixture
    def client(self) -> APIClient:
        client = APIClient()
        client.force_authenticate(User.objects.create_superuser("boss"))
        return client

    def test_ranges_are_not_lent(self):
        with pytest.raises(RangeNotLent, match=r"come from hibernate_unique_key"):
            lend(resolve(Order), 10)
        assert stored_hi() == 1

    def test_over_rest_that_is_a_conflict(self, client):
        address = "/hilo/collections/orders/ranges/"
        answer = client.post(address, {"size": 10}, format="json")
        assert answer.status_code == 409
        assert "next-id" in answer.json()["detail"]
        assert stored_hi() == 1

    def test_ravendbs_clients_are_refused(self, client):
        address = "/raven/sesame/databases/shop/hilo/next"
        answer = client.get(address, {"tag": "orders"})
        assert answer.status_code == 400
        assert "next-id" in json.loads(answer.content)["Message"]
        assert stored_hi() == 1


@pytest.mark.usefixtures("unique_key")
class TestGenerator:
    def test_every_call(self):
        assert next_number(HILO) == 10
        assert next_numbers(HILO, 3) == [11, 12, 13]
        assert (next_id(HILO), next_ids(HILO, 2)) == (14, [15, 16])
        assert [*islice(iter_ids(HILO), 3)] == [17, 18, 19]
        assert async_to_sync(anext_number)(HILO) == 20
        assert async_to_sync(anext_numbers)(HILO, 2) == [21, 22]

        async def three() -> list[Any]:
            ids = aiter_ids(HILO)
            return [await anext(ids) for _ in range(3)]

        assert async_to_sync(three)() == [23, 24, 25]
        assert stored_hi() == 5
        assert next_numbers(HILO, 100)[-1] - 25 >= 100

    def test_a_number_takes_no_anchor(self):
        with pytest.raises(ValueError, match="cannot have an anchor"):
            next_id(HILO, anchor="x")

    def test_another_preset_of_the_same_counter_has_the_same_ranges(self):
        assert next_number(HILO) == 10
        assert next_number(ForeignCounter(HILO.storage, HILO.formula)) == 11


class TestFloors:
    def test_a_row_rises_and_never_falls(self, unique_key):
        HILO.raise_floor("default", 95)
        assert stored_hi() == 10
        HILO.raise_floor("default", 99)
        assert stored_hi() == 10
        HILO.raise_floor("default", 5)
        assert stored_hi() == 10
        assert drawn(HILO, 1)[0] == 100

    def test_a_row_that_is_missing_is_made(self, segments):
        LAST_USED.raise_floor("default", 95)
        assert drawn(LAST_USED, 2) == [96, 97]

    def test_what_fell_back_is_healed(self, segments):
        assert next_numbers(LAST_USED, 40)[-1] == 40
        execute("UPDATE hibernate_sequences SET next_val = 3")
        assert next_numbers(LAST_USED, 40)[0] == 41
        execute("UPDATE hibernate_sequences SET next_val = 3")
        assert drawn(LAST_USED, 1, minimum=80) == [81]
        assert stored("next_val FROM hibernate_sequences") == 81

    @needs_sequences
    @pytest.mark.parametrize("increment", [1, 10])
    def test_a_sequence_rises_and_never_falls(self, make, increment):
        make(f"CREATE SEQUENCE orders_seq INCREMENT BY {increment}")
        source = database.Sequence("orders_seq", increment)
        for floor in (1, 95, 95, 7, 1003, 1):
            highest = max(source.read_max("default"), floor)
            source.raise_floor("default", floor)
            assert source.read_max("default") >= highest
        assert 1003 < next_value("orders_seq") <= 1003 + 2 * increment
        assert drawn(source, 1)[0] > 1003

    @needs_sequences
    def test_a_sequence_that_fell_back_is_healed(self, make, new_process):
        new_process()
        make("CREATE SEQUENCE orders_seq")
        source = database.Sequence("orders_seq")
        assert next_numbers(source, 32) == [*range(1, 33)]
        execute("ALTER SEQUENCE orders_seq RESTART WITH 5")
        assert min(next_numbers(source, 40)) > 32
        assert drawn(source, 3, minimum=5_000_000)[0] == 5_000_001

    @needs_sequences
    @pytest.mark.parametrize("cache", [50, 1000])
    def test_what_a_session_has_cached_is_passed_over(self, make, cache):
        make(f"CREATE SEQUENCE orders_seq CACHE {cache}")
        source = database.Sequence("orders_seq")
        drawn(source, 1)
        name = "'orders_seq'" if CHOSEN == "postgres" else "orders_seq"
        with partner() as alias:
            execute(f"SELECT setval({name}, 5000)", using=alias)
        assert drawn(source, 1, minimum=5000)[0] > 5000

    @needs_postgresql
    @pytest.mark.parametrize("far", [3000, 2_000_000])
    def test_beside_a_process_that_draws_all_the_while(self, make, python, far):
        make("CREATE SEQUENCE orders_seq", "CREATE TABLE done (x int)")
        code = """
import threading
from django.db import connection
from django_hilo.sources import database
from django_hilo.counters.ranges import Wanted
source = database.Sequence("orders_seq")
drawn, over = [], threading.Event()

def draw():
    with connection.cursor() as cursor:
        while not over.is_set():
            cursor.execute("SELECT nextval('orders_seq')")
            drawn.append(cursor.fetchone()[0])
    connection.close()

thread = threading.Thread(target=draw, daemon=True)
thread.start()
floors, ours = [], []
while len(drawn) < 20:
    pass
for step in range(1, 6):
    floor = step * FAR
    source.raise_floor("default", floor)
    before = len(drawn)
    ours += [r.range for r in source.reserve("default", Wanted(3))]
    assert ours[-1].low > floor, (ours, floor)
    while len(drawn) < before + 20:
        pass
    assert drawn[-1] > floor
over.set()
thread.join()
mine = [n for r in ours for n in range(r.low, r.high + 1)]
assert drawn == sorted(drawn), "it never fell"
assert len({*drawn, *mine}) == len(drawn) + len(mine)
print("ok", len(drawn))
"""
        assert python(code.replace("FAR", str(far))).startswith("ok")


BOUNDED = hibernate.HiLo(9, max_number=1000)


class TestMaxNumber:
    """One explicit id must not drive all partners over their type."""

    def test_an_explicit_key_over_it_is_refused(self, settings, unique_key):
        named(settings, numbers_item=BOUNDED)
        with pytest.raises(HiLoError, match="'1001' is above 1000, the max"):
            Item.objects.create(pk=1001)
        assert not Item.objects.exists()
        assert stored_hi() == 1

    def test_so_is_an_explicit_text_id(self, settings, unique_key):
        named(settings, orders=BOUNDED)
        with pytest.raises(HiLoError, match="orders/5000"):
            Order.objects.create(id="orders/5000")
        Order.objects.create(id="orders/700")
        assert Order.objects.create().pk > "orders/700"

    def test_nobody_raises_it_over_that(self, unique_key):
        with pytest.raises(CounterExhausted, match="max_number"):
            BOUNDED.raise_floor("default", 1001)
        assert stored_hi() == 1

    def test_steps_of_an_import_end_there(self, settings, unique_key):
        named(settings, numbers_item=BOUNDED)
        for number in range(960, 970):
            Item.objects.create(pk=number)
        assert stored_hi() <= 101


class TestGapless:
    """A gapless id of the same collection would be the same text."""

    def test_over_rest(self, settings, unique_key):
        named(settings, orders=BOUNDED)
        client = APIClient()
        client.force_authenticate(User.objects.create_superuser("boss"))
        answer = client.post("/hilo/gapless/orders/next/", {}, format="json")
        assert answer.status_code == 409
        assert "hibernate_unique_key" in str(answer.data)

    def test_a_collection_with_a_source_gives_none(self, settings, unique_key):
        named(settings, Tickets=BOUNDED)
        with pytest.raises(RangeNotLent, match="could equal"):
            known_gapless_counter("tickets")

    @isolate_apps("tests.apps.records")
    @pytest.mark.parametrize(
        "field",
        [
            HiLoField(collection="orders", server_ids=True),
            GaplessIdField(collection="orders"),
        ],
    )
    def test_a_check_tells(self, settings, field):
        class Bill(models.Model):
            number = field.clone()

            class Meta:
                app_label = "records"

        checked = Bill._meta.get_field("number")
        assert "django_hilo.E108" not in [
            message.id for message in check_field(checked)
        ]
        named(settings, ORDERS=BOUNDED)
        assert "django_hilo.E108" in [message.id for message in check_field(checked)]


def test_receivers_get_the_collection(settings, unique_key, heard):
    named(settings, orders=BOUNDED)
    told = heard(range_reserved, "reservation")
    next_id(Order)
    assert [reservation.collection for reservation in told] == ["orders"]
