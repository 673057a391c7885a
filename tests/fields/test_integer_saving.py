"""HiLoBigAutoField: every way to save, explicit keys, copies, shapes of models."""

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.db import DataError, connection, models
from django.test.utils import CaptureQueriesContext

from django_hilo.exceptions import CounterExhausted, HiLoError
from django_hilo.fields import HiLoBigAutoField
from django_hilo.fields._collection_names import collection_of_keys
from django_hilo.generator import (
    next_number,
)
from django_hilo.identifiers import check_collection
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import (
    Basket,
    BasketItem,
    Box,
    Crate,
    Item,
    ItemProxy,
    Place,
    SpecialItem,
    Tag,
)
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=[Item, Tag, Box], ids=["HiLoManager", "default", "abstract"])
def model(request):
    return request.param


def objects(model, *names):
    key = "label" if model is Box else "name"
    return [model(**{key: name}) for name in names]


def statements(captured) -> list[str]:
    """Return the verbs of what was written to our tables."""
    sql = [query["sql"] for query in captured if "numbers_" in query["sql"]]
    words = [
        text.split()[0]
        for text in sql
        if not re.search("sqlite_sequence|django_hilo", text)
    ]
    return [word for word in words if word in ("INSERT", "UPDATE")]


class TestWays:
    def test_save_create_and_their_kin(self, model):
        key = "label" if model is Box else "name"
        saved = objects(model, "a")[0]
        saved.save()
        created = model.objects.create(**{key: "b"})
        got, is_new = model.objects.get_or_create(**{key: "c"})
        again, is_new_again = model.objects.get_or_create(**{key: "c"})
        made, _ = model.objects.update_or_create(**{key: "d"})
        numbers = [saved.pk, created.pk, got.pk, made.pk]
        assert numbers == list(range(saved.pk, saved.pk + 4))
        assert (is_new, is_new_again, again.pk) == (True, False, got.pk)
        assert set(model.objects.values_list("pk", flat=True)) == set(numbers)

    def test_bulk_create(self, model):
        model.objects.bulk_create(objects(model, "first"))
        made = model.objects.bulk_create(
            objects(model, *(f"n{n}" for n in range(100))), batch_size=40
        )
        numbers = [each.pk for each in made]
        assert len(set(numbers)) == 100
        assert None not in numbers
        found = model.objects.in_bulk(numbers)
        key = "label" if model is Box else "name"
        assert all(getattr(found[each.pk], key) == getattr(each, key) for each in made)

    def test_one_statement_each(self, model):
        objects(model, "warm")[0].save()
        with CaptureQueriesContext(connection) as captured:
            objects(model, "one")[0].save()
        assert len(captured) == 1
        with CaptureQueriesContext(connection) as captured:
            model.objects.bulk_create(objects(model, "two", "three"))
        assert statements(captured) == ["INSERT"]
        created = model.objects.latest("pk")
        with CaptureQueriesContext(connection) as captured:
            created.save()
        assert statements(captured) == ["UPDATE"]


class TestExplicitKeys:
    @pytest.mark.parametrize("key", [5000, "5000"])
    def test_a_number_and_its_text(self, key, new_process):
        Item.objects.create()
        Item.objects.create(pk=key)
        made = [Item.objects.create().pk for _ in range(80)]
        assert 5000 not in made
        new_process()
        assert Item.objects.create().pk > 5000

    @pytest.mark.parametrize("key", [0, -7])
    def test_none_that_a_counter_gives(self, key):
        low = Item.objects.create().pk
        if connection.vendor == "mysql" and key == 0:
            with pytest.raises(ValueError, match="does not accept 0"):
                Item.objects.create(pk=key)
        else:
            Item.objects.create(pk=key)
            assert Item.objects.filter(pk=key).exists()
        assert Item.objects.create().pk == low + 1

    @pytest.mark.parametrize("key", [10**15, 2**63 - 1, str(2**62)])
    def test_one_far_too_high_is_refused_before_the_row(self, key):
        low = Item.objects.create().pk
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            Item.objects.create(pk=key)
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            Item.objects.bulk_create([Item(), Item(pk=key)])
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            Tag.objects.bulk_create([Tag(pk=key)])
        assert Item.objects.count() == 1
        assert Item.objects.create().pk < low + 10

    @pytest.mark.parametrize("key", ["x", "7.5"])
    def test_what_is_no_number(self, key):
        with pytest.raises((ValueError, DataError)):
            Item.objects.create(pk=key)
        assert Item.objects.create().pk > 0

    @pytest.mark.parametrize("key", ["", None])
    def test_nothing_is_no_key(self, key):
        assert Item.objects.create(pk=key).pk > 0

    def test_a_text_comes_back_as_the_column_has_it(self):
        new = Item(pk="5001")
        new.save(force_insert=True)
        assert new.pk == 5_001

    def test_a_low_one_first_leaves_rows_behind_no_secret(self, new_process):
        """The process looks for rows before its first range, whatever it saw before."""
        start = Item.objects.create().pk
        existing = [insert(number) for number in range(start + 40, start + 80)]
        new_process()
        Item.objects.create(pk=start + 36)
        made = [Item.objects.create().pk for _ in range(50)]
        assert min(made) > max(existing)

    def test_one_over_rows_that_the_counter_does_not_know(self, settings, new_process):
        settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 1000}
        if connection.vendor == "postgresql":
            Item.objects.create()  # its sequence alone is far below
            settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 10_000}
        insert(5000)
        new_process()
        Item.objects.create(pk=5001)
        assert Item.objects.create().pk > 5001


def insert(number: int) -> int:
    execute(f"INSERT INTO numbers_item (id, name) VALUES ({number}, '')")
    return number


class TestCopies:
    def test_a_forced_update_of_a_new_child_inserts_its_parent(self):
        """As in Django, but the key comes from the counter."""
        special = SpecialItem(name="new")
        special.save(force_update=True)
        assert special.pk == special.id == Item.objects.get(name="new").pk
        assert len({special.pk, *[Item.objects.create().pk for _ in range(40)]}) == 41

    def test_a_copy_of_a_child(self):
        special = SpecialItem.objects.create(name="a", extra="x")
        old = special.pk
        special.pk = special.id = None
        special._state.adding = True
        special.save()
        assert special.pk == special.id == old + 1
        assert SpecialItem.objects.count() == Item.objects.count() == 2


class TestShapes:
    def test_multi_table_inheritance(self):
        special = SpecialItem(name="a", extra="x")
        with CaptureQueriesContext(connection) as captured:
            special.save()
        assert statements(captured) == ["INSERT", "INSERT"]
        assert special.pk == special.id == special.item_ptr_id
        given = SpecialItem.objects.assign_ids([SpecialItem(), SpecialItem()])
        assert [each.id for each in given] == [each.pk for each in given]
        for each in given:
            each.save()
        assert SpecialItem.objects.count() == 3

    def test_siblings_of_an_abstract_base_count_for_themselves(self):
        assert Box._meta.pk.collection_name == "numbers_box"
        assert Crate._meta.pk.collection_name == "numbers_crate"

    def test_a_proxy_shares_the_counter(self):
        item = Item.objects.create()
        proxy = ItemProxy.objects.create()
        more = ItemProxy.objects.bulk_create([ItemProxy()])
        assert [proxy.pk, more[0].pk] == [item.pk + 1, item.pk + 2]

    def test_many_to_many_with_and_without_a_model(self):
        items = Item.objects.bulk_create([Item(), Item(), Item()])
        tag = Tag.objects.create(name="t")
        tag.items.set(items)
        through = Tag.items.through.objects.order_by("pk")
        assert len({row.pk for row in through}) == 3
        tag.items.remove(items[0])
        tag.items.add(items[0])
        basket = Basket.objects.create()
        basket.items.add(*items, through_defaults={"count": 2})
        rows = BasketItem.objects.order_by("pk")
        assert {row.item_id for row in rows} == {item.pk for item in items}
        assert basket.items.through is BasketItem

    def test_a_graph_before_any_insert(self):
        first, second = Place.objects.assign_ids([Place(name="a"), Place(name="b")])
        second.near = first
        Place.objects.bulk_create([first, second])
        assert Place.objects.get(name="b").near == first


class TestEnds:
    @pytest.fixture
    def last_number(self, new_process) -> Iterator[int]:
        low = Crate.objects.create().pk
        execute(f"INSERT INTO numbers_crate (id, label) VALUES ({2**63 - 1}, '')")
        new_process()
        yield low
        execute("DELETE FROM numbers_crate")
        # It outlives its row.
        if connection.vendor == "mysql":
            execute("ALTER TABLE numbers_crate AUTO_INCREMENT = 1")
        elif connection.vendor == "sqlite":
            execute("DELETE FROM sqlite_sequence WHERE name = 'numbers_crate'")

    def test_the_last_number_of_all(self, last_number):
        """On PostgreSQL the default goes on below such a row, and so do we."""
        if connection.vendor == "postgresql":
            assert last_number < Crate.objects.create().pk < last_number + 100
            return
        with pytest.raises(CounterExhausted, match=r"2\^63-1"):
            Crate.objects.create()


@pytest.mark.django_db(
    transaction=True, databases=["default", "other"], reset_sequences=True
)
def test_a_number_of_another_databases_counter_is_explicit_there():
    for _ in range(3):
        Item.objects.next_id()
    (item,) = Item.objects.assign_ids(objects(Item, "first"))
    Item.objects.using("other").create(name="its own")
    item.save(using="other")
    for _ in range(8):
        Item.objects.using("other").create(name="after it")
    assert Item.objects.using("other").count() == 10


class TestConflicts:
    """An object must not keep the number of no row."""

    @pytest.fixture(autouse=True)
    def unique_names(self):
        execute("CREATE UNIQUE INDEX numbers_item_names ON numbers_item (name)")
        yield
        table = " ON numbers_item" if IS_MYSQL else ""
        execute(f"DROP INDEX numbers_item_names{table}")

    @pytest.mark.parametrize("manager", ["objects", "_base_manager"])
    def test_updated(self, manager):
        old = Item.objects.create(name="a")
        [new] = getattr(Item, manager).bulk_create(
            [Item(name="a")],
            update_conflicts=True,
            update_fields=["name"],
            **({} if IS_MYSQL else {"unique_fields": ["name"]}),
        )
        assert Item.objects.get().pk == old.pk
        if connection.features.can_return_rows_from_bulk_insert:
            if not IS_MYSQL or manager == "objects":
                assert new.pk == old.pk
        elif manager == "objects":
            assert new.pk is None

    @pytest.mark.parametrize("manager", ["objects", "_base_manager"])
    def test_ignored(self, manager):
        Item.objects.create(name="a")
        made = getattr(Item, manager).bulk_create(
            [Item(name="a"), Item(name="b")], ignore_conflicts=True
        )
        if not IS_MYSQL or manager == "objects":
            assert [each.pk for each in made] == [None, None]
        assert Item.objects.count() == 2
        third = Item.objects.create(name="c").pk
        assert third not in Item.objects.exclude(name="c").values_list("pk", flat=True)


class TestKeysOfOtherTypes:
    def test_the_changed_key_of_a_loaded_object_is_checked(self):
        item = Item.objects.create()
        item.pk = 2**63 - 1
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            item.save()
        assert Item.objects.count() == 1

    def test_numbers_of_other_types(self):
        number = next_number(Item) + 1
        Item.objects.bulk_create([Item(id=Decimal(number))])
        assert number not in {Item.objects.create().pk for _ in range(3)}


class TestTargets:
    def test_where_the_counter_is(self):
        Item.objects.create()
        rows = HiLoDocument.objects.filter(collection="numbers_item")
        tags = [row.node_tag for row in rows]
        assert tags == ([] if CHOSEN == "postgres" else [""])


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


@pytest.mark.parametrize(
    "options", [{"force_update": True}, {"update_fields": ["name"]}]
)
def test_an_update_of_a_proxy_without_a_key(options):
    item = ItemProxy(name="none")
    with pytest.raises(ValueError, match="primary key"):
        item.save(**options)
    assert item.pk is None
