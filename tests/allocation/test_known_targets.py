"""Targets that are remembered: all that ids depend on is looked at for each id."""

import pytest
from django.db import connection, connections, models, router
from django.test import override_settings
from django.test.utils import isolate_apps

from django_hilo._allocation import memory
from django_hilo.fields import HiLoField
from django_hilo.generator import (
    next_id,
    next_number,
)
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def known():
    """Return what this thread remembers."""
    return memory.current().known_targets.by_name


@pytest.fixture(params=["model", "label", "collection", "instance", "field"])
def ask(request):
    """Ask for an order's id in each way, by what is known already."""
    targets = {
        "model": Order,
        "label": "records.Order",
        "collection": "orders",
        "instance": Order(),
        "field": Order._meta.pk,
    }

    def way():
        return next_id(targets[request.param])

    assert [way(), way()] == ["orders/1-A", "orders/2-A"]
    return way


def test_it_is_found_once(ask, django_assert_num_queries, monkeypatch):
    monkeypatch.setattr("django_hilo._allocation.known_targets.resolve", None)
    with django_assert_num_queries(0):
        assert ask() == "orders/3-A"


@pytest.mark.parametrize(
    ("key", "value", "id"),
    [
        ("SEPARATOR", ":", "orders:3-A"),
        ("SHOW_NODE_TAG", False, "orders/3"),
        ("NODE_TAG", "B", "orders/1-B"),
    ],
)
def test_settings_hold_at_once(ask, key, value, id, settings):
    with override_settings(HILO={**settings.HILO, key: value}):
        assert ask() == id
    assert parse(ask())[4:] == parse("orders/4-A")[4:]
    assert ask().endswith("-A")


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite cannot be another's home")
def test_another_home_holds_at_once(ask, settings):
    with override_settings(HILO={**settings.HILO, "DATABASE": "other"}):
        assert ask() == "orders/1-B"
        assert HiLoDocument.objects.using("other").exists()
    assert ask() == "orders/3-A"


def test_a_router_that_comes_is_asked():
    assert [next_id(Order), next_id(Order)] == ["orders/1-A", "orders/2-A"]
    with override_settings(DATABASE_ROUTERS=["tests.support.routers.OrdersOnOther"]):
        assert [next_id(Order), next_id(Order)] == ["orders/1-B", "orders/2-B"]
    assert next_id(Order) == "orders/3-A"


def test_a_router_may_change_its_mind():
    next_id(Order), next_id(Order)
    answers = iter(["default", "other", "default", "other", "other"])

    class Fickle:
        def db_for_write(self, model, **hints):
            return next(answers) if model is Order else None

    with override_settings(DATABASE_ROUTERS=[Fickle()]):
        assert [parse(next_id(Order)).number for _ in range(4)] == [3, 1, 4, 2]


def test_each_database_has_its_own(ask):
    assert [next_id(Order, "other") for _ in range(3)] == [
        f"orders/{n}-B" for n in (1, 2, 3)
    ]
    assert ask() == "orders/3-A"
    assert Order.objects.using("other").next_id() == "orders/4-B"
    assert Order.objects.db_manager("other").next_id() == "orders/5-B"


def test_a_connection_that_gets_a_schema(monkeypatch):
    next_id(Order), next_id(Order)
    monkeypatch.setitem(vars(connections["default"]), "schema_name", "tenant")
    assert "tenant" in {key.database.schema for key in drawn_from()}


@pytest.mark.parametrize("part", ["NAME", "HOST", "PORT"])
def test_a_connection_that_is_to_another_database(part, monkeypatch):
    next_id(Order), next_id(Order)
    other = str(connection.settings_dict[part]) + "7"
    monkeypatch.setitem(connection.settings_dict, part, other)
    keys = drawn_from()
    assert other in {str(getattr(key.database, part.lower())) for key in keys}


def test_an_alias_that_stands_for_another_database(monkeypatch):
    """As programs do that add databases while they run."""
    next_id(Order), next_id(Order)
    databases = connections.databases
    monkeypatch.setitem(databases, "default", databases["other"])
    before = connections["default"]
    del connections["default"]
    try:
        name = str(connections["other"].settings_dict["NAME"])
        keys = drawn_from()
        assert {key.database.name for key in keys} == {name}
    finally:
        connections["default"] = before


def drawn_from():
    """Return the counters that an id is asked of, which none of them gives."""
    keys = []

    def note(known):
        keys.append(known.target.key)
        raise LookupError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_hilo.generator.allocate_one", note)
        with pytest.raises(LookupError):
            next_id(Order)
    return keys


def test_no_more_are_kept_than_a_program_has():
    for number in range(1_050):
        next_number(f"many-{number}")
    assert len(known()) <= 1_000


def test_an_instance_is_written_where_the_router_says(monkeypatch):
    class Replica:
        def db_for_write(self, model, **hints):
            return "default" if model is Order else None

    order = Order.objects.using("other").create()
    next_id(order)
    monkeypatch.setattr(router, "routers", [Replica()])
    assert next_id(order) == "orders/1-A"


def test_an_instance_is_asked_on_its_own_database():
    order = Order.objects.using("other").create()
    assert next_id(order) == "orders/2-B"
    assert next_id(Order()) == "orders/1-A"


@isolate_apps("tests.apps.records")
def test_models_that_go_are_not_kept():
    class Passing(models.Model):
        id = HiLoField(primary_key=True)

        class Meta:
            app_label = "records"

    assert [next_id(Passing), next_id(Passing)] == ["passings/1-A", "passings/2-A"]
    assert not [name for name, _ in known() if name is Passing]
