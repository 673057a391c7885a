"""The shortest way to an id goes wrong nowhere: what ids depend on is looked at."""

import pytest
from django.db import connection, connections, models, transaction
from django.test import override_settings
from django.test.utils import isolate_apps

from django_hilo._allocation.fast_path import known
from django_hilo.fields import HiLoField
from django_hilo.generator import iter_ids, next_id, return_ranges
from django_hilo.identifiers import parse
from django_hilo.managers import HiLoManager, HiLoQuerySet
from django_hilo.models import HiLoDocument, ServerPrefix
from tests.apps.records.models import Order, OrderLine
from tests.support.databases import CHOSEN
from tests.support.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture(params=["next_id", "manager", "iterator"])
def ask(request):
    """Ask for an order's id in each of the short ways, which are known already."""
    ids = iter_ids(Order)
    way = {
        "next_id": lambda: next_id(Order),
        "manager": Order.objects.next_id,
        "iterator": lambda: next(ids),
    }[request.param]
    assert [way(), way()] == ["orders/1-A", "orders/2-A"]
    return way


def test_it_is_the_short_way(ask, django_assert_num_queries, monkeypatch):
    monkeypatch.setattr("django_hilo.generator.resolve", None)
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


@pytest.mark.parametrize("way", ["key", "inside"])
def test_settings_changed_in_place_hold_from_the_next_block_on(way, settings):
    settings.HILO = {**settings.HILO, "NODE_TAG": {"default": "A"}}
    ids = iter_ids(Order)
    assert [next(ids), next(ids)] == ["orders/1-A", "orders/2-A"]
    if way == "key":
        settings.HILO["NODE_TAG"] = "B"
    else:
        settings.HILO["NODE_TAG"]["default"] = "B"
    tags = "".join(parse(next(ids)).node_tag for _ in range(100))
    assert tags.lstrip("A") == "B" * (100 - tags.count("A"))
    assert tags.endswith("B")


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite cannot be another's home")
def test_another_home_holds_at_once(ask, settings):
    with override_settings(HILO={**settings.HILO, "DATABASE": "other"}):
        assert ask() == "orders/1-B"
        assert HiLoDocument.objects.using("other").exists()
    assert ask() == "orders/3-A"


def test_a_router_that_comes_is_asked(ask):
    with override_settings(DATABASE_ROUTERS=["tests.support.routers.OrdersOnOther"]):
        assert [ask(), ask()] == ["orders/1-B", "orders/2-B"]
    assert ask() == "orders/3-A"


def test_a_router_may_change_its_mind(ask):
    answers = iter(["default", "other", "default", "other", "other"])

    class Fickle:
        def db_for_write(self, model, **hints):
            return next(answers) if model is Order else None

    with override_settings(DATABASE_ROUTERS=[Fickle()]):
        assert [parse(ask()).number for _ in range(4)] == [3, 1, 4, 2]


def test_each_database_has_its_own(ask):
    assert [next_id(Order, "other") for _ in range(3)] == [
        f"orders/{n}-B" for n in (1, 2, 3)
    ]
    assert ask() == "orders/3-A"
    assert Order.objects.using("other").next_id() == "orders/4-B"
    assert Order.objects.db_manager("other").next_id() == "orders/5-B"


@pytest.mark.parametrize("way", ["next_id", "manager"])
def test_a_connection_that_gets_a_schema(way, monkeypatch):
    ask = {"next_id": lambda: next_id(Order), "manager": Order.objects.next_id}[way]
    assert [ask(), ask()] == ["orders/1-A", "orders/2-A"]
    monkeypatch.setitem(vars(connections["default"]), "schema_name", "tenant")
    assert "tenant" in {key.database.schema for key in drawn_from(ask)}


@pytest.mark.parametrize("part", ["NAME", "HOST", "PORT"])
def test_a_connection_that_is_to_another_database(part, monkeypatch):
    next_id(Order), next_id(Order)
    other = str(connection.settings_dict[part]) + "7"
    monkeypatch.setitem(connection.settings_dict, part, other)
    keys = drawn_from(lambda: next_id(Order))
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
        keys = drawn_from(lambda: next_id(Order))
        assert {key.database.name for key in keys} == {name}
    finally:
        connections["default"] = before


def drawn_from(ask):
    """Return the counters that an id is asked of, which none of them gives."""
    keys = []

    def note(target, spent):
        keys.append(target.key)
        raise LookupError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_hilo._allocation.fast_path.allocate_id", note)
        with pytest.raises(LookupError):
            ask()
    return keys


def test_threads_have_their_own(ask):
    before = dict(known.by_alias[None])
    found = in_thread(lambda: (dict(known.by_alias[None]), ask()))
    assert found == ({}, "orders/3-A")
    assert known.by_alias[None] == before


def test_a_return(ask):
    assert return_ranges() == 1
    assert HiLoDocument.objects.get().max == 2
    assert ask() == "orders/3-A"


def test_an_explicit_id_in_the_range(ask):
    Order.objects.create(id="orders/4-A")
    assert parse(ask()).number > 32


def test_an_id_of_a_range_that_is_bound(ask):
    return_ranges()
    with transaction.atomic():
        assert ask() == "orders/3-A"
        assert ask() == "orders/4-A"


def test_a_prefix_holds_from_the_next_range_on(ask):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    assert ask() == "orders/3-A"
    return_ranges()
    assert ask() == "orders/North/4-A"


def test_counters_that_were_flushed(ask, transactional_db):
    from django.core.management import call_command

    call_command("flush", interactive=False, verbosity=0)
    assert ask() == "orders/1-A"


def test_a_new_process(ask, new_process):
    new_process()
    assert ask() == "orders/33-A"
    assert ask() == "orders/34-A"


def test_anchors_and_labels_go_on_after_it(ask):
    assert next_id(Order, anchor="x") == "orders/3-A$x"
    assert next_id("records.Order") == "orders/4-A"
    assert Order.objects.next_id(Order(pk="orders/1-A")) == "orders/5-A$orders/1-A"
    assert Order.objects.all().next_id() == "orders/6-A"
    assert ask() == "orders/7-A"


@isolate_apps("tests.apps.records")
def test_models_that_go_are_not_kept():
    class Passing(models.Model):
        id = HiLoField(primary_key=True)

        class Meta:
            app_label = "records"

    assert [next_id(Passing), next_id(Passing)] == ["passings/1-A", "passings/2-A"]
    assert Passing not in known.by_alias[None]


def test_managers_whose_querysets_differ():
    class Elsewhere(HiLoManager):
        def get_queryset(self):
            return super().get_queryset().using("other")

    class Shouting(HiLoQuerySet):
        def next_id(self, anchor=None):
            return super().next_id(anchor).upper()

    next_id(OrderLine), next_id(OrderLine)
    for manager, expected in (
        (Elsewhere(), "OrderLines/1-B"),
        (HiLoManager.from_queryset(Shouting)(), "ORDERLINES/3-A"),
        (HiLoManager.from_queryset(HiLoQuerySet)(), "OrderLines/4-A"),
    ):
        manager.model = OrderLine
        assert manager.next_id() == expected


class TestStreams:
    def test_an_error_does_not_end_them(self, monkeypatch):
        ids = iter_ids(Order)
        assert next(ids) == "orders/1-A"
        for _ in range(31):
            next(ids)
        with monkeypatch.context() as patch:
            patch.setattr(
                "django_hilo._allocation.fast_path.allocate", lambda *args: 1 / 0
            )
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    next(ids)
        assert next(ids) == "orders/33-A"

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
    def test_nor_does_an_interrupt(self, interrupt, monkeypatch):
        ids = iter_ids(Order)
        for _ in range(32):
            next(ids)

        def stop(*args):
            raise interrupt

        with monkeypatch.context() as patch:
            patch.setattr("django_hilo._allocation.fast_path.allocate", stop)
            with pytest.raises(interrupt):
                next(ids)
        assert next(ids) == "orders/33-A"

    def test_unknown_targets_raise_before_the_first_id(self):
        with pytest.raises(LookupError):
            iter_ids("no.Such")

    def test_one_reservation_does_for_a_range(self, django_assert_num_queries):
        ids = iter_ids(Order)
        next(ids)
        with django_assert_num_queries(0):
            assert [next(ids) for _ in range(31)][-1] == "orders/32-A"
