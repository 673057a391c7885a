"""Every way to save a row, with the statements that it costs."""

import contextlib
import copy
import re

import factory
import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.core import serializers
from django.core.management import call_command
from django.db import IntegrityError, connection, connections, transaction
from django.db.migrations.state import ProjectState
from django.db.models import signals
from django.forms import modelform_factory
from django.test.utils import CaptureQueriesContext
from django.utils.translation import gettext_lazy
from rest_framework.serializers import ModelSerializer

from django_hilo.exceptions import HiLoError
from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.generator import next_id, next_ids
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from tests.apps.records.models import (
    Bistro,
    Car,
    CarProxy,
    Editable,
    Invoice,
    Numbered,
    Order,
    OrderLine,
    Person,
    Place,
    Plain,
    Restaurant,
    Seat,
    Truck,
)

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(databases=["default", "other"]),
]


@contextlib.contextmanager
def statements(*expected: str, using: str = "default"):
    """Assert the statements of a block, by their first words, reservations included."""
    with CaptureQueriesContext(connections[using]) as queries:
        yield
    found = [
        re.sub(r"\s+", " ", query["sql"].replace('"', "").replace("`", ""))
        for query in queries.captured_queries
    ]
    assert len(found) == len(expected), found
    for sql, start in zip(found, expected, strict=True):
        assert sql.upper().startswith(start.upper()), found


@pytest.fixture
def reservations(heard):
    @contextlib.contextmanager
    def counted(expected: int):
        seen = heard(range_reserved, "reservation")
        yield
        assert len(seen) == expected, seen

    return counted


@pytest.fixture
def filled(db):
    """Memory holds ranges of all collections, so that no reservation is counted."""
    for model in (Order, OrderLine, Invoice, Plain, Numbered, Car, Place, Seat, Person):
        next_id(model)
    next_id(Bistro._meta.get_field("code"))


class TestSave:
    @pytest.mark.parametrize(
        ("save", "expected"),
        [
            (lambda: Order().save(), ["INSERT"]),
            (Order.objects.create, ["INSERT"]),
            (lambda: Order().save(force_insert=True), ["INSERT"]),
            (lambda: Order.objects.create(id=""), ["INSERT"]),
            (lambda: Order(id="legacy").save(), ["UPDATE", "INSERT"]),
            (Restaurant.objects.create, ["INSERT", "INSERT"]),
        ],
    )
    def test_statements_of_a_new_object(self, filled, save, expected):
        with statements(*expected):
            save()

    def test_other_things_that_count_as_false_are_ids(self):
        Order(id=0).save(force_insert=True)
        assert Order.objects.get().id == "0"

    def test_a_known_id_of_a_row_updates_it(self, filled):
        Order.objects.create(id="legacy", name="old")
        with statements("UPDATE"):
            Order(id="legacy", name="new").save()
        assert Order.objects.get(id="legacy").name == "new"

    @pytest.mark.parametrize("adding", [False, True])
    def test_a_copy_costs_one_insert(self, filled, adding):
        order = Order.objects.create(name="first")
        order.pk = None
        order._state.adding = adding
        with statements("INSERT"):
            order.save()
        assert Order.objects.filter(name="first").count() == 2

    def test_update_fields_without_id_is_djangos_error_and_burns_nothing(self, filled):
        for options in ({"update_fields": ["name"]}, {"force_update": True}):
            with (
                pytest.raises(ValueError, match="Cannot force an update in save"),
                transaction.atomic(),
            ):
                Order(name="x").save(**options)
        assert Order.objects.create().id == "orders/2-A"

    def test_assign_ids_then_save_costs_one_insert(self, filled):
        order = Order()
        with statements():
            assert Order.objects.assign_ids([order]) == [order]
        assert order.id == "orders/2-A"
        with statements("INSERT"):
            order.save()
        with statements("UPDATE"):
            order.save()

    def test_an_insert_that_failed_is_tried_again_with_the_same_id(self, filled):
        number = Numbered.objects.create(number="taken")
        other = Numbered(number="taken")
        with pytest.raises(IntegrityError), transaction.atomic():
            other.save()
        line = OrderLine()
        OrderLine.objects.assign_ids([line])
        before = line.id
        with pytest.raises(IntegrityError), transaction.atomic():
            line.save()
        line.order = Order.objects.create()
        with statements("INSERT"):
            line.save()
        assert line.id == before
        assert number.pk

    def test_get_or_create_and_update_or_create(self, filled):
        order, made = Order.objects.get_or_create(name="x")
        same, made_again = Order.objects.get_or_create(name="x")
        assert (made, made_again) == (True, False) and order == same
        assert Order.objects.update_or_create(name="y")[0].id == "orders/3-A"
        assert Order.objects.update_or_create(name="y")[1] is False

    def test_related_managers(self, filled):
        order = Order.objects.create()
        with statements("INSERT"):
            line = order.lines.create()
        order.lines.bulk_create([OrderLine(order=order)])
        assert line.id == "OrderLines/2-A"
        assert order.lines.count() == 2

    def test_using_another_database(self):
        order = Order()
        order.save(using="other")
        line = OrderLine.objects.using("other").create(order=order)
        assert (order.id, line.id) == ("orders/1-B", "OrderLines/1-B")
        assert Order.objects.db_manager("other").next_id() == "orders/2-B"
        assert Order.objects.create().id == "orders/1-A"


class TestShapes:
    def test_multi_table_inheritance(self, filled):
        bistro = Bistro.objects.create(name="x")
        assert bistro.pk == bistro.restaurant_ptr_id == bistro.id == "places/2-A"
        assert Place.objects.get(pk="places/2-A").name == "x"
        assert Bistro.objects.get().code == bistro.code == "bistro-codes/2-A"

    @pytest.mark.parametrize("model", [Bistro, Place])
    def test_assign_ids_of_a_child_gives_the_parent_its_id(self, filled, model):
        bistro = Bistro()
        model.objects.assign_ids([bistro])
        assert bistro.pk == bistro.id == bistro.restaurant_ptr_id == "places/2-A"
        with statements(*["INSERT"] * 3):
            bistro.save()

    def test_a_child_of_an_existing_parent(self, filled):
        place = Place.objects.create(name="x")
        restaurant = Restaurant(place_ptr=place, stars=3)
        restaurant.__dict__.update(name=place.name)
        restaurant.save()
        by_key = Place.objects.create(name="y")
        Restaurant(place_ptr_id=by_key.pk, name="y").save()
        assert Restaurant.objects.count() == Place.objects.count() == 2

    def test_a_copy_of_a_child(self, filled):
        restaurant = Restaurant.objects.create(name="x")
        restaurant.pk = restaurant.id = None
        with statements("INSERT", "INSERT"):
            restaurant.save()
        assert Restaurant.objects.count() == Place.objects.count() == 2

    def test_models_of_an_abstract_base_have_collections_of_their_own(self):
        assert Car.objects.create().id == "cars/1-A"
        assert Truck.objects.create().id == "trucks/1-A"
        assert CarProxy.objects.create().id == "cars/2-A"

    def test_composite_keys(self, filled):
        place = Place.objects.create()
        with statements("INSERT"):
            seat = Seat.objects.create(place=place)
        assert seat.pk == (place.pk, "seats/2-A")
        with statements("INSERT"):
            Seat(place=place).save()

    def test_beside_another_key(self, filled):
        with statements("INSERT"):
            numbered = Numbered.objects.create()
        assert numbered.number == "numbers/2-A"
        Numbered.objects.filter(pk=numbered.pk).update(number=None)
        loaded = Numbered.objects.get(pk=numbered.pk)
        loaded.save()
        assert Numbered.objects.get(pk=numbered.pk).number is None

    def test_a_deferred_number_is_left_alone(self, filled):
        numbered = Numbered.objects.create()
        loaded = Numbered.objects.defer("number").get(pk=numbered.pk)
        with statements("UPDATE"):
            loaded.save()
        assert Numbered.objects.get(pk=numbered.pk).number == "numbers/2-A"

    def test_an_id_that_is_too_long_is_refused(self):
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=1)
        field = Order._meta.get_field("id")
        field.max_length = 5
        try:
            with pytest.raises(HiLoError, match=r"allows 5. Raise max_length"):
                Order.objects.create()
        finally:
            field.max_length = 64


class TestBulk:
    def test_bulk_create_costs_one_reservation_and_one_insert(
        self, filled, reservations
    ):
        next_ids(Order, 31)
        with reservations(1):
            orders = Order.objects.bulk_create((Order() for _ in range(200)), 70)
        assert len({order.pk for order in orders}) == Order.objects.count() == 200
        next_id(Order)
        with reservations(0), CaptureQueriesContext(connection) as queries:
            Order.objects.bulk_create([Order() for _ in range(3)])
        inserts = [q for q in queries.captured_queries if q["sql"].startswith("INSERT")]
        assert len(inserts) == 1

    def test_a_save_after_bulk_create_updates(self, filled):
        (order,) = Order.objects.bulk_create([Order()])
        with statements("UPDATE"):
            order.save()
        (plain,) = Plain.objects.bulk_create([Plain()])
        assert plain.pk == "plain-things/2-A"
        with statements("UPDATE"):
            plain.save()

    def test_numbers_beside_another_key(self, filled):
        created = Numbered.objects.bulk_create([Numbered(), Numbered(number="own")])
        assert [numbered.number for numbered in created] == ["numbers/2-A", "own"]

    def test_some_with_ids_and_some_without(self, filled):
        orders = Order.objects.bulk_create([Order(id="x"), Order(id=""), Order()])
        assert [order.pk for order in orders] == ["x", "orders/2-A", "orders/3-A"]


class TestOtherWriters:
    def test_factories_with_muted_signals(self, filled):
        class OrderFactory(factory.django.DjangoModelFactory):
            class Meta:
                model = Order

        with factory.django.mute_signals(signals.pre_save, signals.post_save):
            with statements("INSERT"):
                order = OrderFactory()
            assert OrderFactory.build().pk is None
            batch = OrderFactory.create_batch(3)
        assert order.pk == "orders/2-A"
        assert len({o.pk for o in batch}) == 3

    def test_receivers_of_pre_save_see_the_id(self, filled, receive):
        seen = []

        def see(instance, **kwargs):
            seen.append(instance.pk)

        receive(signals.pre_save, see, Order)
        Order.objects.create()
        assert seen == ["orders/2-A"]

    def test_natural_keys_without_ids(self, filled):
        text = '[{"model": "records.person", "fields": {"email": "a@example.com"}}]'
        for item in serializers.deserialize("json", text):
            item.save()
        assert Person.objects.get().pk == "people/2-A"
        for item in serializers.deserialize("json", text):
            item.save()
        assert Person.objects.count() == 1

    def test_historical_models(self, filled):
        historical = ProjectState.from_apps(apps).apps.get_model("records", "Order")
        assert historical is not Order
        with statements("INSERT"):
            order = historical.objects.create()
        assert order.pk == "orders/2-A"
        (other,) = historical.objects.bulk_create([historical()])
        assert other.pk == "orders/3-A"

    def test_async_writers(self, filled):
        async def write():
            order = await Order.objects.acreate()
            second = Order()
            await second.asave()
            (third,) = await Order.objects.abulk_create([Order()])
            (fourth,) = await Order.objects.aassign_ids([Order()])
            fifth = await Order.objects.anext_id()
            sixth = await Order.objects.anext_ids(2)
            return [order.pk, second.pk, third.pk, fourth.pk, fifth, *sixth]

        ids = async_to_sync(write)()
        assert ids == [f"orders/{number}-A" for number in range(2, 9)]


def schema_editor():
    """Return an editor that writes no SQL but collects it."""
    editor = connection.schema_editor(collect_sql=True)
    editor.collected_sql, editor.deferred_sql = [], []
    editor.atomic_migration = False
    return editor


class TestColumn:
    def test_django_makes_no_second_index(self):
        editor = schema_editor()
        editor.create_model(OrderLine)
        editor.collected_sql += map(str, editor.deferred_sql)
        sql = "\n".join(editor.collected_sql)
        assert "_like" not in sql
        assert "varchar(64)" in sql or "character varying(64)" in sql

    def test_a_changed_collection_needs_no_sql(self):
        old, new = (
            HiLoField(primary_key=True),
            HiLoField(collection="things", primary_key=True),
        )
        for field in (old, new):
            field.set_attributes_from_name("id")
            field.model = Order
        editor = schema_editor()
        editor.alter_field(Order, old, new)
        assert editor.collected_sql == []

    @pytest.mark.parametrize(
        "field",
        [
            HiLoField(),
            HiLoField(collection="things", primary_key=True),
            HiLoField(anchor="order", max_length=80),
            HiLoField(capacity=10, max_capacity=100, editable=True, blank=False),
            HiLoField("the number", primary_key=True),
            HiLoField(
                anchor="order",
                convention=isinstance,
                width=19,
                capacity=10,
                max_capacity=100,
                server_ids=True,
                any_id=True,
            ),
            HiLoField(collection="a", verbose_name="number", unique=True, null=True),
            HiLoField[str | None, str | None](null=True),
        ],
    )
    def test_deconstruct_round_trip(self, field):
        name, path, args, kwargs = field.deconstruct()
        assert path == "django_hilo.fields.HiLoField"
        again = HiLoField(*args, **kwargs)
        assert again.deconstruct() == (name, path, args, kwargs)
        assert vars(again).keys() == vars(field).keys()
        for option in (*HiLoField.own_options, "editable"):
            assert getattr(again, option) == getattr(field, option)
        assert field.clone().deconstruct() == field.deconstruct()

    @pytest.mark.parametrize("kind", [HiLoField, GaplessIdField, HiLoBigAutoField])
    def test_the_first_argument_is_the_verbose_name(self, kind):
        name = gettext_lazy("order number")
        field = kind(name, collection="things", primary_key=True)
        assert (field.verbose_name, field.collection) == (name, "things")
        assert field.deconstruct()[3]["verbose_name"] is name
        assert field.clone().verbose_name == name
        assert kind().verbose_name is None
        assert "collection" not in kind("things").deconstruct()[3]

    @pytest.mark.parametrize("kind", [HiLoField, GaplessIdField])
    def test_options_are_keywords(self, kind):
        with pytest.raises(TypeError, match="positional"):
            kind("number", "things")

    def test_defaults_are_not_written_to_migrations(self):
        assert HiLoField().deconstruct()[3] == {"max_length": 64}
        assert HiLoField(anchor="order").deconstruct()[3] == {
            "anchor": "order",
            "max_length": 128,
        }

    def test_a_subclass_keeps_its_own_path(self):
        assert OwnField().deconstruct()[1] == f"{__name__}.OwnField"

    def test_no_migration_is_missing(self):
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)


class OwnField(HiLoField):
    pass


class TestNothingIsBurnt:
    """Neither Order(), nor forms, nor validation takes a number."""

    @pytest.fixture(autouse=True)
    def unchanged(self, filled, reservations):
        yield
        with reservations(0):
            assert Order.objects.create().id == "orders/2-A"

    def test_by_objects(self):
        assert Order().pk is None
        Order(name="x").full_clean()
        with pytest.raises(Exception, match="at most 50"):
            Order(name="x" * 51).full_clean()

    def test_by_forms(self):
        form_class = modelform_factory(Order, fields="__all__")
        assert list(form_class().fields) == ["name"]
        form_class()
        assert not form_class({"name": "x" * 51}).is_valid()

    def test_by_an_editable_field(self):
        form_class = modelform_factory(Editable, fields="__all__")
        assert not form_class()["id"].value()
        form = form_class({"id": "", "name": "x"})
        assert form.is_valid()
        assert form.save().pk == "editables/1-A"

    def test_by_serializers(self):
        class OrderSerializer(ModelSerializer):
            class Meta:
                model = Order
                fields = ("id", "name")

        serializer = OrderSerializer(data={"id": "ignored", "name": "x" * 51})
        assert not serializer.is_valid()
        assert set(serializer.errors) == {"name"}
        serializer = OrderSerializer(data={"name": "x"})
        assert serializer.is_valid()

    def test_by_an_invalid_anchor(self):
        with pytest.raises(HiLoError):
            Invoice().save()


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_historical_models_take_ids_on_the_database_of_using():
    historical = ProjectState.from_apps(apps).apps.get_model("records", "Order")
    made = historical.objects.using("other").bulk_create([historical(), historical()])
    assert [order.pk for order in made] == ["orders/1-B", "orders/2-B"]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_copy_to_another_database_gets_its_number_there():
    numbered = Numbered.objects.create()
    numbered.pk = numbered.number = None
    numbered.save(using="other")
    assert numbered.number == "numbers/1-B"


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_an_id_of_one_database_is_explicit_on_another(settings):
    settings.HILO = {"NODE_TAG": "A"}
    order = Order()
    Order.objects.assign_ids([order])
    order.save(using="other")
    made = Order.objects.using("other").create()
    assert made.pk != order.pk


@pytest.mark.django_db(transaction=True)
def test_one_object_twice():
    order = Order()
    Order.objects.assign_ids([order, order])
    assert (order.id, next_id(Order)) == ("orders/1-A", "orders/2-A")


@pytest.mark.django_db(transaction=True)
def test_copies_do_not_share_what_is_fresh():
    order = Order()
    Order.objects.assign_ids([order])
    other = copy.copy(order)
    other.pk = None
    other.save()
    with CaptureQueriesContext(connection) as queries:
        order.save()
    assert len(queries.captured_queries) == 1
