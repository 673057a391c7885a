import asyncio
import threading

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import OperationalError, connections, transaction

from django_hilo._allocation import memory
from django_hilo._allocation.find import resolve
from django_hilo._allocation.memory import Memory
from django_hilo.counters import reservation
from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.generator import (
    aiter_ids,
    anext_id,
    anext_ids,
    anext_number,
    anext_numbers,
    areturn_ranges,
    iter_ids,
    next_id,
    next_ids,
    next_number,
    next_numbers,
    raise_floor,
    return_ranges,
)
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from tests.apps.records.models import Bistro, Invoice, Numbered, Order, OrderLine, User
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.threads import begin, in_threads

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class TestFloors:
    @pytest.mark.parametrize("target", ["orders", "records.Order", Order])
    def test_of_targets(self, target):
        assert next_number(target) == 1
        raise_floor(target, 999)
        assert next_number(target) == 1000
        raise_floor(target, 10)
        assert next_number(target) > 1000

    def test_on_another_database(self):
        raise_floor(Order, 999, using="other")
        assert next_id(Order, "other") == "orders/1000-B"
        assert next_id(Order) == "orders/1-A"


class TestTargets:
    def test_they_share_one_counter(self):
        field = Order._meta.get_field("id")
        targets = ["orders", "ORDERS", "records.Order", Order, Order(), field]
        assert [next_number(target) for target in targets] == [1, 2, 3, 4, 5, 6]

    def test_a_collection_has_the_width_of_its_model(self):
        width = "0000000000000000001"
        assert next_id("sortables") == f"sortables/{width}-A"

    def test_ids_are_spelt_as_the_target_is(self):
        assert next_id("Orders") == "Orders/1-A"
        assert next_id(Order) == "orders/2-A"
        assert next_id(OrderLine) == "OrderLines/1-A"

    @pytest.mark.parametrize("target", ["shop.Order", "records.Nothing"])
    def test_unknown_labels(self, target):
        with pytest.raises(LookupError):
            next_number(target)

    def test_models_without_a_hilo_field(self):
        with pytest.raises(
            LookupError, match=r"django_hilo.HiLoDocument has 0 HiLo fields"
        ):
            next_number(HiLoDocument)

    def test_a_model_whose_number_is_no_key(self):
        assert next_id(Numbered) == "numbers/1-A"

    def test_a_child_has_its_parents_counter_and_its_own(self):
        with pytest.raises(LookupError, match="2 HiLo fields"):
            next_id(Bistro)
        assert next_id("records.Restaurant") == "places/1-A"

    @pytest.mark.parametrize("target", ["1x", "a b", "", "x" * 101, "a'; DROP TABLE x"])
    def test_collections_outside_the_grammar(self, target):
        with pytest.raises(InvalidDocumentId):
            next_number(target)
        assert not HiLoDocument.objects.exists()

    def test_a_router_sends_the_rows_elsewhere(self, settings):
        settings.DATABASE_ROUTERS = [
            "tests.support.routers.Silent",
            "tests.support.routers.OrdersOnOther",
        ]
        assert next_id(Order) == "orders/1-B"
        assert next_id(User) == "users/1-A"
        assert next_id("orders") == "orders/1-A"

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite cannot be another's home")
    def test_a_home_database(self, settings):
        settings.HILO = {**settings.HILO, "DATABASE": "other"}
        with transaction.atomic():
            assert Order.objects.create().id == "orders/1-B"
        settings.HILO = {**settings.HILO, "DATABASE": None}
        settings.DATABASE_ROUTERS = ["tests.support.routers.CountersOnOther"]
        assert Order.objects.create().id == "orders/2-B"
        assert not HiLoDocument.objects.using("default").exists()


def sizes(reservations):
    return [reservation.range.size for reservation in reservations]


class TestCounts:
    @pytest.mark.parametrize("n", [0, -1, 1.5, "3", None, True])
    def test_bad_counts(self, n):
        for take in (next_numbers, next_ids):
            with pytest.raises(ValueError, match="an integer of at least 1"):
                take(Order, n)

    def test_many_at_once_cost_one_reservation(self, heard):
        seen = heard(range_reserved, "reservation")
        assert next_numbers(Order, 100_000) == list(range(1, 100_001))
        assert sizes(seen) == [100_000]
        next_number(Order)
        assert sizes(seen) == [100_000, 64], "a demand does not count as a capacity"

    def test_what_is_in_memory_goes_first(self):
        next_id(Order)
        assert next_ids(Order, 40)[:31] == [f"orders/{n}-A" for n in range(2, 33)]

    def test_capacities_of_the_field_and_of_the_settings(self, settings, heard):
        settings.HILO = {**settings.HILO, "CAPACITY": 3, "MAX_CAPACITY": 5}
        seen = heard(range_reserved, "reservation")
        for _ in range(9):
            next_number(Order)
        assert sizes(seen) == [3, 5, 5]
        field = User._meta.get_field("id")
        field.capacity, field.max_capacity = 2, 2
        try:
            for _ in range(3):
                next_number(User)
        finally:
            field.capacity = field.max_capacity = None
        assert sizes(seen[3:]) == [2, 2]


class TestIds:
    def test_the_separator_and_the_tag_are_settings(self, settings):
        settings.HILO = {"SEPARATOR": ":", "NODE_TAG": "EU"}
        assert next_id(Order) == "orders:1-EU"
        settings.HILO = {"SHOW_NODE_TAG": False, "NODE_TAG": "EU"}
        assert next_id(Order) == "orders/2"
        settings.HILO = {"SEPARATOR": "-", "NODE_TAG": "EU"}
        with pytest.raises(InvalidDocumentId, match="separator '-'"):
            next_id(Order)

    def test_anchors(self):
        assert next_id(Invoice, anchor="orders/33-A") == "invoices/1-A$orders/33-A"
        with pytest.raises(InvalidDocumentId):
            next_id(Invoice, anchor="")

    def test_an_endless_iterator(self):
        ids = iter_ids(Order)
        assert [next(ids) for _ in range(40)][-1] == "orders/40-A"
        with pytest.raises(LookupError):
            iter_ids("no.Model")

    def test_iterators_of_threads(self):
        def take(_):
            ids = iter_ids(Order)
            return [next(ids) for _ in range(500)]

        assert len(set().union(*in_threads(8, take))) == 4000


TAKE_IN_THE_LOOP = """
from asgiref.sync import async_to_sync
from django_hilo import generator
from django_hilo.generator import *

def forbid(*args):
    raise AssertionError("left the event loop")

async def take():
    found = [await anext_id(Order)]
    generator.sync_to_async = forbid
    found += [await anext_id(Order), await anext_number(Order)]
    found += await anext_ids(Order, 2) + await anext_numbers(Order, 2)
    try:
        await anext_ids(Order, 100)
    except AssertionError:
        print(*found)

async_to_sync(take)()
"""


class TestAsync:
    def test_twins(self):
        async def take():
            ids = aiter_ids(Order)
            found = [await anext_id(Order), *await anext_ids(Order, 2)]
            found += [await anext(ids), await anext(ids)]
            numbers = [await anext_number(Order), *await anext_numbers(Order, 40)]
            await areturn_ranges()
            return found, numbers

        ids, numbers = async_to_sync(take)()
        assert ids == [f"orders/{n}-A" for n in range(1, 6)]
        assert numbers == list(range(6, 47))

    def test_bad_counts(self):
        with pytest.raises(ValueError):
            async_to_sync(anext_ids)(Order, 0)
        with pytest.raises(ValueError):
            async_to_sync(anext_numbers)(Order, 0)

    def test_what_is_in_memory_never_leaves_the_event_loop(self, python):
        # In tests it does: only the thread of the ORM knows of a TestCase.
        assert python(TAKE_IN_THE_LOOP).split() == [
            "orders/1-A", "orders/2-A", "3", "orders/4-A", "orders/5-A", "6", "7",
        ]  # fmt: skip

    def test_many_tasks(self):
        async def take():
            tasks = [anext_ids(Order, 1 + n % 3) for n in range(200)]
            return [i for ids in await asyncio.gather(*tasks) for i in ids]

        ids = async_to_sync(take)()
        assert len(ids) == len(set(ids)) == 399


class TestRefills:
    def test_threads_wait_for_one_reservation(self, heard):
        seen = heard(range_reserved)
        barrier = threading.Barrier(16)

        def take(_):
            barrier.wait()
            return next_number(Order)

        assert sorted(in_threads(16, take)) == list(range(1, 17))
        assert len(seen) == 1

    def test_an_error_of_one_thread_stops_no_other(self, monkeypatch):
        reserve = reservation.reserve_range
        inside, go_on = threading.Event(), threading.Event()

        def fail_once(*args, **kwargs):
            if not inside.is_set():
                inside.set()
                go_on.wait(PATIENCE)
                raise KeyboardInterrupt
            return reserve(*args, **kwargs)

        monkeypatch.setattr(reservation, "reserve_range", fail_once)
        first = begin(lambda: next_number(Order))
        inside.wait(PATIENCE)
        second = begin(lambda: next_number(Order))
        go_on.set()
        with pytest.raises(KeyboardInterrupt):
            first()
        assert second() == 1

    def test_waiting_has_an_end(self, monkeypatch, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.1, "RETRY_FOR": 0.1}
        inside, go_on = threading.Event(), threading.Event()
        reserve = reservation.reserve_range

        def hang(*args, **kwargs):
            inside.set()
            go_on.wait(PATIENCE)
            return reserve(*args, **kwargs)

        monkeypatch.setattr(reservation, "reserve_range", hang)
        first = begin(lambda: next_number(Order))
        inside.wait(PATIENCE)
        with pytest.raises(HiLoError, match="Another thread has been reserving"):
            next_number(Order)
        settings.HILO = {}
        go_on.set()
        first()

    def test_a_receiver_may_take_ids_itself(self, receive):
        found = []

        def take(reservation, **kwargs):
            if reservation.collection == "orders":
                found.extend([next_id(User), next_id(Order)])

        receive(range_reserved, take)
        assert next_id(Order) == "orders/1-A"
        assert found == ["users/1-A", "orders/2-A"]


class TestMemory:
    def test_what_it_knows_is_tied_to_the_database_behind_the_alias(self, monkeypatch):
        next_id(Order)
        settings_dict = connections["default"].settings_dict
        monkeypatch.setitem(settings_dict, "NAME", "another")
        assert return_ranges() == 0
        key = resolve(Order).key
        assert memory.current().memory(key).take(1) is None

    def test_an_alias_that_is_no_more(self, monkeypatch):
        next_id(Order, "other")
        monkeypatch.delitem(connections.settings, "other")
        connection = connections["other"]
        del connections["other"]
        try:
            assert return_ranges() == 0
        finally:
            connections["other"] = connection

    def test_tenants_have_counters_of_their_own(self, monkeypatch):
        next_id(Order)
        connection = connections["default"]
        monkeypatch.setattr(connection, "schema_name", "tenant", raising=False)
        key = resolve(Order).key
        assert key[0].schema == "tenant"
        assert memory.current().memory(key).take(1) is None

    def test_a_migration_forgets_nothing_and_a_flush_all(self):
        next_id(Order)
        call_command("migrate", verbosity=0)
        assert next_id(Order) == "orders/2-A"
        call_command("flush", verbosity=0, interactive=False)
        assert next_id(Order) == "orders/1-A"


@pytest.mark.parametrize("where", ["begin_refill", "add"])
def test_an_interrupt_around_a_refill_holds_nobody_up(where, monkeypatch):
    """A signal's handler may raise between any two steps, as Celery's limits do."""
    real, raised = getattr(Memory, where), []

    def interrupt(counter, *args):
        real(counter, *args)
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt

    next_number("orders")
    (counter,) = memory.current().memories()
    next_numbers("orders", 31)
    monkeypatch.setattr(Memory, where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        next_number("orders")
    assert counter.refill is None
    assert next_number("orders") > 32


@pytest.mark.parametrize("target", ["a.b.c", None, 7])
def test_what_is_no_target(target):
    with pytest.raises(LookupError):
        next_id(target)


def test_returns_do_not_retry_for_long(monkeypatch, settings):
    settings.HILO = {**settings.HILO, "RETRY_FOR": 3600}
    next_id(Order)

    def fail(*args, **kwargs):
        error = OperationalError("locked")
        error.__cause__ = Exception(1213)
        error.__cause__.sqlstate = "40P01"
        error.__cause__.sqlite_errorcode = 5
        raise error

    monkeypatch.setattr("django_hilo.counters.reservation.short_transaction", fail)
    assert return_ranges() == 0
