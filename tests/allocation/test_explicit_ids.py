"""Explicit ids raise the floor, so that no range gives their numbers."""

import logging
import re
from contextlib import nullcontext
from functools import partial
from unittest.mock import Mock

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Value
from django.test.utils import CaptureQueriesContext

from django_hilo import generator
from django_hilo._allocation.memory import Memory
from django_hilo.counters import (
    floor,
    raise_floor,
    read_max,
    reservation,
    reserve,
    return_range,
    returning,
)
from django_hilo.exceptions import CounterNotUsed, HiLoError, RangeNotReturned
from django_hilo.generator import (
    next_id,
    next_ids,
    next_number,
    next_numbers,
    return_ranges,
)
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item
from tests.apps.records.models import Claim, Letter, Numbered, Order, Plain
from tests.support.counters import counter, max_of
from tests.support.databases import CHOSEN
from tests.support.rollbacks import Undo
from tests.support.sql import execute
from tests.support.threads import in_thread

transactional = pytest.mark.django_db(transaction=True)


def raise_undo(*args, **kwargs):
    raise Undo


@transactional
class TestExplicitIds:
    def test_the_next_range_clears_an_explicit_id(self, new_process):
        Order.objects.create(id="orders/500-A")
        assert (counter().max, counter().floor) == (500, 500)
        assert Order.objects.create().id == "orders/501-A"
        new_process()
        assert next_number(Order) > 501

    def test_a_range_that_contains_it_is_dropped(self):
        assert next_number(Order) == 1
        Order.objects.create(id="orders/20-A")
        later = {next_number(Order) for _ in range(100)}
        assert 20 not in later and min(later) == 33

    def test_numbers_that_were_given_already_change_nothing(self):
        ids = next_ids(Order, 3)
        with CaptureQueriesContext(connection) as queries:
            Order.objects.create(id=ids[1])
        assert not [q for q in queries.captured_queries if "hilodocument" in q["sql"]]
        assert next_number(Order) == 4

    def test_bulk_create(self, new_process):
        orders = [Order(id=f"orders/{n}-A") for n in (7, 300, 12)]
        Order.objects.bulk_create([*orders, Order()])
        new_process()
        assert next_number(Order) > 300
        assert Order.objects.count() == 4

    def test_fixtures(self, new_process):
        text = '[{"model": "records.order", "pk": "orders/77-A", "fields": {}}]'
        for item in serializers.deserialize("json", text):
            item.save()
        new_process()
        assert next_id(Order) == "orders/78-A"

    def test_a_field_beside_the_key(self):
        Numbered.objects.create(number="numbers/9-A")
        assert Numbered.objects.create().number == "numbers/10-A"

    def test_anchors_and_prefixes_are_read_over(self):
        Order.objects.create(id="ORDERS/South/40-A$x")
        assert next_number(Order) == 41

    @pytest.mark.parametrize("key", ["orders/500-B", "users/500-A", "x", "orders:x"])
    def test_ids_of_other_kinds_raise_nothing(self, key):
        Order.objects.create(id=key)
        assert next_number(Order) == 1

    @pytest.mark.parametrize("id", ["{}/3-a", "{}/3-A ", "{}/3-\u00c1", "{}/3 "])
    @pytest.mark.parametrize("model", [Order, Claim, Letter])
    def test_ids_that_the_database_may_take_for_equal(self, model, id):
        """As MariaDB and MySQL compare texts: without case, accents, final spaces."""
        given = "claims|" if model is Claim else None
        model.objects.create()
        model.objects.create(id=id.format(model._meta.pk.collection_name))
        for _ in range(40):
            model.objects.create()
            model.objects.create(id=given)
        assert model.objects.count() == 82

    def test_an_update_raises_nothing(self):
        Order.objects.create(id="orders/5-A")
        before = counter().ticket
        Order(id="orders/5-A", name="new").save()
        Order.objects.get(id="orders/5-A").save()
        assert counter().ticket == before

    def test_it_rolls_back_with_the_row(self):
        with pytest.raises(Undo), transaction.atomic():
            Order.objects.create(id="orders/500-A")
            raise Undo
        assert not HiLoDocument.objects.exists()

    def test_once_per_transaction_after_its_commit(self):
        with transaction.atomic():
            for number in range(400, 500):
                Order.objects.create(id=f"orders/{number}-A")
            assert next_number(Order) > 499
        assert max_of() >= 500

    def test_an_inner_block_that_rolls_back_does_not_lose_the_outer_ones(
        self, new_process
    ):
        with transaction.atomic():
            with pytest.raises(Undo), transaction.atomic():
                Order.objects.create(id="orders/50-A")
                raise Undo
            Order.objects.create(id="orders/60-A")
            with pytest.raises(Undo), transaction.atomic():
                Order.objects.create(id="orders/70-A")
                raise Undo
        new_process()
        assert next_number(Order) > 60

    def test_hooks_of_others_that_raise_do_not_lose_it(self, new_process):
        with pytest.raises(Undo), transaction.atomic():
            transaction.on_commit(raise_undo)
            with transaction.atomic():
                Order.objects.create(id="orders/10-A")
            Order.objects.create(id="orders/50-A")
            with pytest.raises(Undo), transaction.atomic():
                raise Undo
        new_process()
        assert next_number(Order) > 50

    def test_an_import_pays_in_steps_not_by_rows(self):
        with CaptureQueriesContext(connection) as queries:
            for number in range(1, 1001):
                Order.objects.create(id=f"orders/{number}-A")
        writes = [
            query
            for query in queries.captured_queries
            if query["sql"].startswith("UPDATE") and "hilodocument" in query["sql"]
        ]
        assert len(writes) <= 20
        assert 1000 <= max_of() <= 3000

    def test_a_failed_write_is_logged_and_saves_the_row(self, monkeypatch, caplog):
        fail = Mock(side_effect=HiLoError("the counter is away"))
        monkeypatch.setattr(floor, "raise_floor", fail)
        with caplog.at_level(logging.WARNING, "django_hilo"):
            Order.objects.create(id="orders/500-A")
        assert "hilo_raise_max --database=default" in caplog.text
        assert Order.objects.exists()
        monkeypatch.undo()
        assert next_number(Order) == 501

    def test_an_interrupt_of_a_write_is_the_callers(self, monkeypatch):
        """As of a time limit, which may be an `Exception`."""
        monkeypatch.setattr(floor, "raise_floor", raise_undo)
        with pytest.raises(Undo):
            Order.objects.create(id="orders/500-A")


@transactional
class TestJumps:
    def test_an_absurd_number_is_refused_before_the_row_is_saved(self):
        with pytest.raises(HiLoError, match=r"orders/2000000000-A.*MAX_FLOOR_JUMP"):
            Order.objects.create(id="orders/2000000000-A")
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            Order.objects.bulk_create([Order(id="orders/2000000000-A")])
        assert not Order.objects.exists()
        assert next_number(Order) == 1

    def test_the_counter_is_read_before_refusing(self, new_process):
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=5 * 10**9)
        Order.objects.create(id="orders/5000000001-A")
        assert next_number(Order) == 5_000_000_002

    def test_the_bound_is_a_setting(self, settings):
        settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 10}
        with pytest.raises(HiLoError):
            Order.objects.create(id="orders/11-A")
        Order.objects.create(id="orders/10-A")


@transactional
class TestRaiseFloor:
    def test_it_never_falls(self):
        assert raise_floor("Orders", 100) == 100
        assert raise_floor("orders", 50) == 100
        assert (counter().max, counter().floor) == (100, 100)
        assert next_number(Order) == 101

    def test_a_return_stays_over_the_floor(self):
        reservation = reserve("orders", 100)
        HiLoDocument.objects.update(floor=60)
        with pytest.raises(RangeNotReturned, match="the floor is 60"):
            return_range("orders", 100, 50, reservation.ticket)
        assert return_range("orders", 100, 60, reservation.ticket) == 60

    def test_a_floor_burns_the_ticket(self):
        reservation = reserve("orders", 100)
        raise_floor("orders", 60)
        with pytest.raises(RangeNotReturned):
            return_range("orders", 100, 70, reservation.ticket)

    @pytest.mark.parametrize("number", [0, -1, 2**63, "7", True])
    def test_numbers_out_of_bounds(self, number):
        with pytest.raises(HiLoError, match=r"number .* must be"):
            raise_floor("orders", number)

    def test_a_fixture_never_lowers_a_counter(self):
        raise_floor("orders", 100)
        text = serializers.serialize("json", HiLoDocument.objects.all())
        next_ids(Order, 200)
        for item in serializers.deserialize("json", text):
            item.save()
        assert max_of() == 300
        return_ranges()
        assert next_number(Order) == 301


@transactional
class TestAReturnOnItsWay:
    """A thread gives a range back while another saves an explicit id inside it."""

    @pytest.fixture(params=["before the return", "after the return"])
    def meanwhile(self, request, monkeypatch):
        """Let a function run while the next range goes back, as a thread does."""
        give_back, todo = returning.return_range, []

        def return_range(*args, **kwargs):
            if request.param == "before the return":
                todo.pop()()
                return give_back(*args, **kwargs)
            last = give_back(*args, **kwargs)
            todo.pop()()
            return last

        monkeypatch.setattr(returning, "return_range", return_range)
        return todo.append

    @pytest.mark.parametrize("block", [nullcontext, transaction.atomic])
    def test_no_later_range_has_its_number(self, meanwhile, block, new_process):
        def save():
            with block():
                Order.objects.create(id="orders/5-A")

        assert next_number(Order) == 1
        meanwhile(save)
        return_ranges()
        assert max_of() >= 5
        assert 5 not in [next_number(Order) for _ in range(40)]
        new_process()
        assert next_number(Order) > 40

    def test_not_where_its_floor_could_not_be_written(self, meanwhile, monkeypatch):
        def save():
            with monkeypatch.context() as away:
                away.setattr(floor, "raise_floor", fail)
                Order.objects.create(id="orders/5-A")

        def fail(*args, **kwargs):
            raise HiLoError("the database is away")

        assert next_number(Order) == 1
        meanwhile(save)
        return_ranges()
        assert 5 not in [next_number(Order) for _ in range(40)]

    def test_numbers_under_it_need_no_floor(self, meanwhile):
        ids = next_ids(Order, 3)
        queries = CaptureQueriesContext(connection)

        def save():
            with queries:
                Order.objects.create(id=ids[1])

        meanwhile(save)
        assert return_ranges() == 1
        assert not [q for q in queries.captured_queries if "hilodocument" in q["sql"]]
        assert next_number(Order) == 4


@pytest.mark.django_db(transaction=True)
def test_a_bound_range_that_was_dropped_stays_dropped_after_the_commit():
    with transaction.atomic():
        Order.objects.create()
        Order(id="orders/5-A").save()
    ids = {Order.objects.create().id for _ in range(40)}
    assert len(ids) == 40


@pytest.mark.skipif(CHOSEN != "sqlite", reason="Others have no bound ranges.")
@pytest.mark.django_db(transaction=True)
def test_a_bound_range_that_was_dropped_does_not_double_the_next():
    with transaction.atomic():
        Order.objects.create()
        Order(id="orders/5-A").save()
        Order.objects.create()
    assert read_max("orders") == 2 * 32


@pytest.mark.django_db(transaction=True)
def test_a_floor_is_not_taken_for_stored_because_of_others_ranges(new_process):
    raise_floor("orders", 100)
    others = reserve("orders", 32)
    Order(id="orders/50-A").save()
    return_range("orders", 132, 101, others.ticket)
    Order(id="orders/120-A").save()
    new_process()
    assert next_number(Order) > 120


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_plain_managers_observe_explicit_ids():
    Plain.objects.bulk_create(
        [Plain(id="plain-things/1-A"), Plain(id="plain-things/9-A")]
    )
    plain = Plain()
    plain.save()
    assert int(plain.id.removeprefix("plain-things/").removesuffix("-A")) > 9


@pytest.mark.django_db(transaction=True)
def test_ids_of_plain_managers_raise_no_floor():
    with transaction.atomic():
        Plain.objects.bulk_create([Plain() for _ in range(40)])
        Plain.objects.bulk_create([Plain()])
    document = HiLoDocument.objects.get(collection="plain-things")
    assert (document.floor, Plain.objects.count()) == (0, 41)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("atomic", [True, False])
def test_explicit_and_missing_ids_in_one_bulk_create(atomic):
    block = transaction.atomic() if atomic else nullcontext()
    with block:
        Order.objects.bulk_create([Order(id="orders/1-A"), Order()])
        Order.objects.create()
        Order.objects.bulk_create([Order(id="orders/40-A"), Order(), Order()])
    assert Order.objects.count() == 6


@pytest.mark.django_db(transaction=True)
def test_an_explicit_id_beside_a_range_on_its_way(monkeypatch):
    reserve_range = reservation.reserve_range

    def slow(*args, **kwargs):
        reserved = reserve_range(*args, **kwargs)
        if reserved.range.low == 1:
            in_thread(lambda: Order.objects.create(id="orders/3-A"))
        return reserved

    monkeypatch.setattr(reservation, "reserve_range", slow)
    assert len({Order.objects.create().id for _ in range(10)}) == 10


@transactional
def test_a_range_reserved_just_after_an_explicit_id_dropped_others(monkeypatch):
    taken, drop = [], Memory.drop

    def drop_and_take(counter, numbers):
        drop(counter, numbers)
        if not taken:
            taken.extend(next_numbers(Order, 10))

    monkeypatch.setattr(Memory, "drop", drop_and_take)
    Order.objects.create(id="orders/7-A")
    assert min(taken) > 7


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite cannot be another's home")
def test_a_floor_on_another_home_waits_for_the_rows_commit(settings):
    settings.HILO = {**settings.HILO, "DATABASE": "default"}
    with pytest.raises(Undo), transaction.atomic(using="other"):
        Order.objects.using("other").create(id="orders/5000-A")
        raise Undo
    assert not HiLoDocument.objects.filter(floor__gt=0).exists()
    with transaction.atomic(using="other"):
        Order.objects.using("other").create(id="orders/50-A")
    assert counter().floor == 50


@transactional
def test_a_floor_outlives_a_rollback_to_a_later_savepoint_of_ones_own(new_process):
    with transaction.atomic():
        Order.objects.create(id="orders/500-A")
        execute("SAVEPOINT mine")
        execute("ROLLBACK TO SAVEPOINT mine")
    assert Order.objects.filter(pk="orders/500-A").exists()
    assert read_max("orders") >= 500
    new_process()
    assert next_number(Order) > 500


@transactional
def test_a_floor_outlives_it_where_the_transaction_took_a_range_too(new_process):
    with transaction.atomic():
        Order.objects.create()
        with transaction.atomic():
            Order.objects.create(id="orders/500-A")
        execute("SAVEPOINT mine")
        Order.objects.create(id="orders/600-A")
        execute("ROLLBACK TO SAVEPOINT mine")
    new_process()
    assert next_number(Order) > 500


@transactional
@pytest.mark.parametrize(
    ("model", "ids"),
    [
        (Order, ["orders/499-A", "orders/500-A"]),
        (Letter, ["letters/499", "letters/500"]),
        (Item, [499, 500]),
    ],
)
def test_what_an_expression_cannot_raise_is_said(model, ids):
    told = partial(pytest.warns, RuntimeWarning, match="cannot raise.*hilo_raise_max")
    with told():
        model.objects.create(id=Value(ids[0]))
    with told():
        model.objects.bulk_create([model(id=Value(ids[1]))])
    assert model.objects.filter(pk__in=ids).count() == 2
    call_command("hilo_raise_max", verbosity=0)
    following = re.search(r"\d+", str(model.objects.create().pk))
    assert int(following[0]) > 500


@transactional
def test_the_floor_of_an_integer_key_is_raised_by_the_generator_alone():
    for name in ("numbers_item", "Numbers_Item"):
        told = pytest.raises(CounterNotUsed, match="'numbers_item' is .*generator")
        with told as error:
            raise_floor(name, 10**6)
    assert not HiLoDocument.objects.exists()
    assert "raise_floor('numbers.Item', 1000000) of" in str(error.value)
    generator.raise_floor(Item, 10**6)
    assert Item.objects.create().pk == 10**6 + 1
