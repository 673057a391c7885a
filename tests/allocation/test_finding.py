"""Finding a counter: all that ids depend on is looked at for each id."""

import pytest
from django.db import Error, connection, connections, router
from django.test import override_settings

from django_hilo._allocation import find
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_id, next_number
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item, SpecialItem
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


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


def test_a_child_may_be_written_elsewhere_than_its_parent():
    class ChildrenOnOther:
        def db_for_write(self, model, **hints):
            return "other" if model is SpecialItem else None

    with override_settings(DATABASE_ROUTERS=[ChildrenOnOther()]):
        asked = [SpecialItem, Item, Item._meta.pk]
        found = [find.resolve(each).using for each in asked]
    assert found == ["other", "default", "default"]


def test_each_database_has_its_own(ask):
    assert [next_id(Order, "other") for _ in range(3)] == [
        f"orders/{n}-B" for n in (1, 2, 3)
    ]
    assert ask() == "orders/3-A"
    assert Order.objects.using("other").next_id() == "orders/4-B"
    assert Order.objects.db_manager("other").next_id() == "orders/5-B"


def test_a_connection_that_gets_a_schema(ask, monkeypatch):
    """The numbers of another schema are reserved, not taken out of memory."""
    monkeypatch.setitem(vars(connections["default"]), "schema_name", "tenant")
    assert ask_another_database(ask)


@pytest.mark.parametrize("part", ["NAME", "HOST", "PORT"])
def test_a_connection_that_is_to_another_database(ask, part, monkeypatch, settings):
    settings.HILO = {**settings.HILO, "RETRY_FOR": 0.1}
    assert ask().endswith("/3-A")
    connection.ensure_connection()  # to the one that it has
    other = str(connection.settings_dict[part]) + "7"
    monkeypatch.setitem(connection.settings_dict, part, other)
    assert ask_another_database(ask)


def test_an_alias_that_stands_for_another_database(ask, monkeypatch):
    """As programs do that add databases while they run."""
    databases, before = connections.databases, connections["default"]
    monkeypatch.setitem(databases, "default", databases["other"])
    del connections["default"]
    try:
        assert ask() == "orders/1-A"
    finally:
        connections["default"].close()
        connections["default"] = before


def ask_another_database(ask):
    """Return whether an id is not taken of the ranges of the database before.

    Its table is hidden. Where there is no such database, MySQL's connection fails.
    """
    execute("ALTER TABLE django_hilo_hilodocument RENAME TO hidden")
    try:
        ask()
    except (HiLoError, Error):
        return True
    finally:
        execute("ALTER TABLE hidden RENAME TO django_hilo_hilodocument")
    return False


def test_no_more_is_remembered_than_a_program_has(monkeypatch):
    monkeypatch.setattr(find, "_MOST", 20)
    asked = [next_number(f"many-{number}") for number in range(50)]
    assert asked == [1] * 50
    assert next_number("many-0") == 2


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
