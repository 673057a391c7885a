"""hilo_adopt: counters move between other systems and us, and never fall."""

from collections.abc import Iterator

import pytest
from django.core.management import CommandError
from django.db import connection

from django_hilo.generator import next_number
from django_hilo.models import HiLoDocument
from django_hilo.sources import ForeignCounter, Row, formulas, hibernate
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order, Plain
from tests.support import foreign
from tests.support.commands import told_by
from tests.support.foreign import needs_postgresql

pytestmark = pytest.mark.django_db(transaction=True)

ROW = Row("partner_counters", "value", key={"name": "orders"}, start=0)
PARTNER = ForeignCounter(ROW, formulas.HiLo(10))


@pytest.fixture(autouse=True)
def partner() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE partner_counters "
            "(name varchar(50) NOT NULL PRIMARY KEY, value bigint)"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE partner_counters")


@pytest.fixture
def shared(settings) -> None:
    settings.HILO = {**settings.HILO, "SOURCES": {"Orders": PARTNER}}


def stored() -> int | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM partner_counters")
        row = cursor.fetchone()
    return row[0] if row else None


def adopt(*arguments: str) -> str:
    return told_by("hilo_adopt", *arguments)


def own_max() -> int:
    row = HiLoDocument.objects.filter(pk="orders/A").first()
    return row.max if row else 0


def test_there_and_back(settings, shared, new_process):
    given = [Order.objects.create().pk for _ in range(45)]
    assert given[-1] == "orders/45"
    assert stored() == 11  # 4 blocks for 32 ids, 7 for twice as many
    text = adopt("orders", "--dry-run")
    assert "where name='orders' on 'default': up to 109" in text
    assert "It would be raised to 109." in text
    assert own_max() == 0
    assert "It was raised to 109." in adopt("orders")
    assert own_max() == 109
    settings.HILO = {"NODE_TAG": "A"}
    new_process()
    assert Order.objects.create().pk == "orders/110-A"
    assert "there is nothing to do" in adopt("orders")

    settings.HILO = {"NODE_TAG": "A", "SOURCES": {"orders": PARTNER}}
    assert "It was raised to 149." in adopt("orders", "--back")
    assert stored() == 15
    assert "there is nothing to do" in adopt("orders", "--back")
    new_process()
    assert Order.objects.create().pk == "orders/150"


def test_an_id_that_is_absurdly_high(shared):
    typed = "orders/9223372036854775000"
    with connection.cursor() as cursor:
        sql = "INSERT INTO records_order (id, name) VALUES (%s, '')"
        cursor.execute(sql, [typed])
    assert "up to 9223372036854775000" in adopt("orders", "--dry-run")
    with pytest.raises(CommandError, match=f"The id '{typed}' is .*use --force"):
        adopt("orders")
    assert own_max() == 0
    adopt("orders", "--force")
    assert own_max() == 9223372036854775000


def test_the_highest_id_counts_where_the_counter_fell_back(shared):
    Order.objects.create(id="orders/700")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE partner_counters SET value = 3")
    text = adopt("records.Order")
    assert "records.Order on 'default': up to 700" in text
    assert own_max() == 700


def test_nothing_falls(shared):
    HiLoDocument.objects.create(collection="orders", node_tag="A", max=5000)
    PARTNER.raise_floor("default", 100)
    assert "there is nothing to do" in adopt("orders")
    assert own_max() == 5000
    adopt("orders", "--back")
    assert PARTNER.read_max("default") >= 5000
    PARTNER.raise_floor("default", 90_000)
    before = stored()
    assert "there is nothing to do" in adopt("orders", "--back")
    assert stored() == before


def test_a_row_that_is_missing_is_made(shared):
    HiLoDocument.objects.create(collection="orders", node_tag="A", max=41)
    assert stored() is None
    adopt("orders", "--back")
    assert stored() == 5


def test_the_keys_of_another_table(new_process):
    number = next_number(Item) + 200
    Item.objects.create(pk=number)
    text = adopt("orders", "--table", "numbers_item.id")
    assert f"numbers_item.id on 'default': up to {number}" in text
    assert own_max() == number
    assert Order.objects.create().pk == f"orders/{number + 1}-A"


def test_an_integer_key(settings, new_process):
    PARTNER.raise_floor("default", next_number(Item) + 1000)
    settings.HILO = {"SOURCES": {"numbers_item": PARTNER}}
    keys = [Item.objects.create().pk for _ in range(5)]
    settings.HILO = {}
    new_process()
    assert "It was raised to" in adopt(
        "numbers.Item", "--source", f"{__name__}.PARTNER"
    )
    assert Item.objects.create().pk > PARTNER.read_max("default") >= max(keys)


def test_a_source_by_its_path():
    assert "It was raised to 0" not in adopt(
        "orders", "--source", f"{__name__}.PARTNER"
    )
    PARTNER.raise_floor("default", 55)
    adopt("letters-of-old", "--source", f"{__name__}.PARTNER")
    assert HiLoDocument.objects.get(collection="letters-of-old").max == 59


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orders", "--source", "no.such"], "cannot be imported"),
        (["orders", "--source", "tests.management.test_adopt.ROW"], "is not a source"),
        (["orders", "--table", "numbers"], "TABLE.COLUMN"),
        (["orders", "--table", "no_such.id"], "no_such"),
        (["orders", "--back"], "HILO['SOURCES']"),
        (["or/ders"], "or/ders"),
        (["unknown"], "neither a source nor a model"),
        (["shop.Nothing"], "shop"),
    ],
)
def test_mistakes_are_told(arguments, said):
    with pytest.raises(CommandError) as error:
        adopt(*arguments)
    assert said in str(error.value)


HILO = hibernate.HiLo(9, max_number=1000)


def named(settings, **sources: object) -> None:
    settings.HILO = {"NODE_TAG": {"default": "A", "other": "B"}, "SOURCES": sources}


@pytest.fixture
def row(make) -> None:
    make(
        "CREATE TABLE hibernate_unique_key (next_hi bigint)",
        "INSERT INTO hibernate_unique_key VALUES (2)",
    )


make = foreign.make


class TestAdopting:
    def test_ids_of_our_own_counter_count(self, settings, row, new_process):
        Order.objects.create(id="orders/70-A")
        HiLoDocument.objects.all().delete()
        named(settings, orders=HILO)
        assert "records.Order on 'default': up to 70" in adopt("orders")
        named(settings)
        new_process()
        assert Order.objects.create().pk == "orders/71-A"

    def test_all_models_of_a_collection_count(self, settings, row, monkeypatch):
        monkeypatch.setattr(Plain._meta.pk, "collection", "orders")
        monkeypatch.setattr("django_hilo._allocation.registry._index", ([], {}))
        Plain.objects.create(id="orders/900-A")
        named(settings, orders=HILO)
        for target in ("orders", "records.Order"):
            assert "records.Plain on 'default': up to 900" in adopt(target, "--dry-run")

    def test_a_table_with_text_keys(self):
        Order.objects.create()
        with pytest.raises(CommandError, match=r"records_order\.id .*not an integer"):
            adopt("tickets", "--table", "records_order.id")

    @needs_postgresql
    def test_a_table_in_a_schema(self):
        Item.objects.create(pk=Item.objects.create().pk + 50)
        highest = Item.objects.latest("pk").pk
        text = adopt("tickets", "--table", "public.numbers_item.id")
        assert f"up to {highest}" in text

    @needs_postgresql
    def test_a_table_in_a_schema_with_a_dot(self, make):
        make('CREATE SCHEMA "bill.ing"', 'CREATE TABLE "bill.ing".t AS SELECT 70 AS id')
        assert "up to 70" in adopt("tickets", "--table", '"bill.ing".t.id')
