"""HiLoBigAutoField: integer keys that are there before the insert."""

from __future__ import annotations

import pytest
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext

from django_hilo.fields import HiLoBigAutoField
from django_hilo.fields.collection_names import collection_of_keys
from django_hilo.generator import (
    next_id,
    next_number,
    next_numbers,
    return_ranges,
)
from django_hilo.identifiers import check_collection
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item, Part, SpecialItem, Tag

pytestmark = pytest.mark.servers

transactional = pytest.mark.django_db(transaction=True)


def insert_by_default(name: str = "other") -> int:
    """Insert a row as writers do that know nothing of HiLo."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO numbers_item (name) VALUES (%s)", [name])
        cursor.execute("SELECT MAX(id) FROM numbers_item WHERE name = %s", [name])
        return int(cursor.fetchone()[0])


@transactional
class TestSaving:
    def test_keys_follow_each_other(self):
        first = Item.objects.create(name="a")
        second = Item(name="b")
        second.save()
        assert type(first.pk) is int
        assert second.pk == first.pk + 1

    def test_a_new_object_costs_one_statement(self):
        Item.objects.create()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            Item.objects.create()
        assert len(queries) == 1
        assert queries[0]["sql"].startswith("INSERT")

    def test_keys_are_there_before_the_insert(self):
        items = Item.objects.assign_ids([Item(), Item()])
        parts = [Part(item=item) for item in items]
        numbers = [item.pk for item in items]
        assert None not in numbers
        Item.objects.bulk_create(items)
        Part.objects.bulk_create(parts)
        assert set(Part.objects.values_list("item_id", flat=True)) == set(numbers)

    def test_an_explicit_key_is_kept_and_passed_over(self):
        low = Item.objects.create().pk
        Item.objects.create(pk=low + 5)
        made = [Item.objects.create().pk for _ in range(10)]
        assert low + 5 not in made
        assert len(set(made)) == 10

    def test_other_shapes(self):
        special = SpecialItem.objects.create(extra="x")
        assert Item.objects.get(pk=special.pk)
        tag = Tag.objects.create(name="t")
        tag.items.add(special, Item.objects.create())
        assert tag.items.count() == 2

    def test_an_update_is_an_update(self):
        item = Item.objects.create(name="old")
        item.name = "new"
        with CaptureQueriesContext(connection) as queries:
            item.save()
        assert [query["sql"][:6] for query in queries] == ["UPDATE"]
        assert Item.objects.get().name == "new"


@transactional
class TestOtherWriters:
    def test_the_counter_starts_over_rows_that_exist(self, new_process):
        if connection.vendor == "postgresql":
            pytest.skip("its sequence has given those")
        existing = [insert_by_default() for _ in range(5)]
        assert Item.objects.create().pk > max(existing)

    def test_the_default_of_the_database_goes_on(self):
        if connection.vendor == "mysql":
            pytest.skip("MariaDB: others must stop")
        mine = [Item.objects.create().pk for _ in range(3)]
        theirs = [insert_by_default(f"x{n}") for n in range(40)]
        more = [Item.objects.create().pk for _ in range(70)]
        assert len({*mine, *theirs, *more}) == 113

    def test_return_and_restart(self, new_process):
        last = Item.objects.create().pk
        returned = return_ranges()
        new_process()
        following = Item.objects.create().pk
        if connection.vendor == "postgresql":
            assert (returned, following) == (0, last + 32)
        else:
            assert (returned, following) == (1, last + 1)


@transactional
class TestTargets:
    def test_numbers_by_every_target(self):
        first = next_number(Item)
        assert next_id("numbers.Item") == first + 1
        assert next_numbers("numbers_item", 2) == [first + 2, first + 3]
        assert Item.objects.next_id() == first + 4

    def test_a_rolled_back_transaction(self):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            given = [Item.objects.create().pk for _ in range(3)]
            raise ZeroDivisionError
        after = Item.objects.create().pk
        if connection.vendor == "sqlite":
            assert after == given[0]
        else:
            assert after == given[-1] + 1

    def test_where_the_counter_is(self):
        Item.objects.create()
        rows = HiLoDocument.objects.filter(collection="numbers_item")
        tags = [row.node_tag for row in rows]
        assert tags == ([] if connection.vendor == "postgresql" else [""])


def test_it_is_a_big_auto_field():
    field = Item._meta.pk
    assert isinstance(field, models.BigAutoField)
    assert field.get_internal_type() == "BigAutoField"
    assert HiLoBigAutoField(primary_key=True).deconstruct()[1:] == (
        "django_hilo.fields.HiLoBigAutoField",
        [],
        {"primary_key": True},
    )


@pytest.mark.parametrize(
    ("names", "collection"),
    [
        (("shop", "order"), "shop_order"),
        (("_private", "thing"), "private_thing"),
        (("lager", "größe"), "keys_lager_gre_6a3d4406bb15"),
        (("a" * 60, "b" * 60), f"keys_{'a' * 60}_{'b' * 19}_"),
    ],
)
def test_the_default_collection(names, collection):
    found = collection_of_keys(*names)
    assert found.startswith(collection)
    assert check_collection(found) == found
