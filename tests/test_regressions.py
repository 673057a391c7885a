"""Faults that a review found, each by the shortest way that showed it."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import pytest
from django.core import serializers
from django.db import OperationalError, connection, connections, transaction
from django.db.models import signals
from django.test.utils import CaptureQueriesContext

from django_hilo import reservation
from django_hilo.exceptions import HiLoError, RangeNotReturned, ReservationTimeout
from django_hilo.generator import next_id, next_number, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.reservation import raise_floor, reserve, return_range
from tests.databases import CHOSEN
from tests.records.models import Invoice, Numbered, Order, Plain
from tests.test_transactions import in_thread

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class Undo(Exception):
    pass


def counter() -> HiLoDocument:
    return HiLoDocument.objects.get(collection="orders", node_tag="A")


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite reserves on the caller's own")
def test_a_caller_that_makes_the_counter_itself_gets_an_error_not_a_hang(settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.5}
    with transaction.atomic():
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=100)
        with pytest.raises(ReservationTimeout):
            Order.objects.create()
    assert Order.objects.create().id == "orders/101-A"


def test_a_bound_range_that_was_dropped_stays_dropped_after_the_commit():
    with transaction.atomic():
        Order.objects.create()
        Order(id="orders/5-A").save()
    ids = {Order.objects.create().id for _ in range(40)}
    assert len(ids) == 40


def test_a_floor_is_not_taken_for_stored_because_of_others_ranges(new_process):
    raise_floor("orders", 100)
    others = reserve("orders", 32)
    Order(id="orders/50-A").save()
    return_range("orders", 132, 101, others.ticket)
    Order(id="orders/120-A").save()
    new_process()
    assert next_number(Order) > 120


@pytest.mark.skipif(CHOSEN == "mariadb", reason="MariaDB forgets the older savepoint")
def test_a_savepoint_name_that_is_used_again():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SAVEPOINT step")
        next_number(Order)
        cursor.execute("SAVEPOINT step")
        next_number(Order)
        for _ in range(2):
            cursor.execute("ROLLBACK TO SAVEPOINT step")
            cursor.execute("RELEASE SAVEPOINT step")
        mine = {next_number(Order) for _ in range(2)}
    others = in_thread(lambda: reserve("orders", 4).range)
    assert not any(number in others for number in mine)


@pytest.mark.skipif(CHOSEN != "postgres", reason="psycopg's composed SQL")
@pytest.mark.django_db(transaction=False)
def test_composed_sql_that_rolls_back():
    from django.db.backends.postgresql.psycopg_any import sql

    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT own")
        next_number(Order)
        cursor.execute(sql.SQL("ROLLBACK TO SAVEPOINT own"))
    assert [next_number(Order), counter().max] == [1, 32]


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_a_fixture_of_a_counter_waits_for_a_reservation():
    """The stored Max is read under the lock that the save then holds."""
    next_number(Order)
    text = serializers.serialize("json", HiLoDocument.objects.all())
    others = []

    def reserve_meanwhile(instance, raw, **kwargs):
        if raw and not others:
            others.append(in_thread(try_to_reserve))

    def try_to_reserve():
        try:
            return reserve("orders", 32).range
        except ReservationTimeout:
            return "waited"

    signals.pre_save.connect(reserve_meanwhile, sender=HiLoDocument)
    try:
        with pytest.MonkeyPatch.context() as patch, transaction.atomic():
            from django_hilo import conf

            patch.setitem(conf.django_settings.HILO, "LOCK_TIMEOUT", 0.3)
            for item in serializers.deserialize("json", text):
                item.save()
    finally:
        signals.pre_save.disconnect(reserve_meanwhile, sender=HiLoDocument)
    assert others == ["waited"]
    assert counter().max == 32


def test_historical_models_take_ids_on_the_database_of_using():
    from django.db.migrations.executor import MigrationExecutor

    state = MigrationExecutor(connection).loader.project_state(
        ("records", "0001_initial")
    )
    historical = state.apps.get_model("records", "Order")
    made = historical.objects.using("other").bulk_create([historical(), historical()])
    assert [order.pk for order in made] == ["orders/1-B", "orders/2-B"]


def test_plain_managers_observe_explicit_ids():
    Plain.objects.bulk_create(
        [Plain(id="plain-things/1-A"), Plain(id="plain-things/9-A")]
    )
    plain = Plain()
    plain.save()
    assert int(plain.id.removeprefix("plain-things/").removesuffix("-A")) > 9


def test_a_copy_to_another_database_gets_its_number_there():
    numbered = Numbered.objects.create()
    numbered.pk = numbered.number = None
    numbered.save(using="other")
    assert numbered.number == "numbers/1-B"


def test_without_autocommit_only_what_is_needed_is_reserved():
    connection.set_autocommit(False)
    try:
        numbers = [next_number(Order) for _ in range(4)]
        transaction.commit()
    finally:
        connection.set_autocommit(True)
    assert numbers == [1, 2, 3, 4]


def test_an_explicit_id_beside_a_range_on_its_way(monkeypatch):
    reserve_range = reservation.reserve_range

    def slow(*args, **kwargs):
        reserved = reserve_range(*args, **kwargs)
        if reserved.range.low == 1:
            in_thread(lambda: Order.objects.create(id="orders/3-A"))
        return reserved

    monkeypatch.setattr(reservation, "reserve_range", slow)
    assert len({Order.objects.create().id for _ in range(10)}) == 10


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


def test_an_id_of_one_database_is_explicit_on_another(settings):
    settings.HILO = {"NODE_TAG": "A"}
    order = Order()
    Order.objects.assign_ids([order])
    order.save(using="other")
    made = Order.objects.using("other").create()
    assert made.pk != order.pk


def test_an_anchor_without_an_id():
    with pytest.raises(HiLoError, match="no anchor"):
        Invoice.objects.next_id(anchor=Order())


def test_one_object_twice():
    order = Order()
    Order.objects.assign_ids([order, order])
    assert (order.id, next_id(Order)) == ("orders/1-A", "orders/2-A")


def test_a_save_of_one_field_burns_the_ticket():
    mine = reserve("orders", 32)
    document = counter()
    document.max = 32
    document.save(update_fields=["max"])
    with pytest.raises(RangeNotReturned):
        return_range("orders", 32, 5, mine.ticket)


def test_a_return_to_no_counter_makes_none():
    with pytest.raises(RangeNotReturned, match="no counter 'typo/A'"):
        return_range("typo", 5, 3, "abc")
    assert not HiLoDocument.objects.exists()


@pytest.mark.parametrize("target", ["a.b.c", None, 7])
def test_what_is_no_target(target):
    with pytest.raises(LookupError):
        next_id(target)


def test_copies_do_not_share_what_is_fresh():
    order = Order()
    Order.objects.assign_ids([order])
    other = copy.copy(order)
    other.pk = None
    other.save()
    with CaptureQueriesContext(connection) as queries:
        order.save()
    assert len(queries.captured_queries) == 1


def test_returns_do_not_retry_for_long(monkeypatch, settings):
    settings.HILO = {**settings.HILO, "RETRY_FOR": 3600}
    next_id(Order)

    def fail(*args):
        error = OperationalError("locked")
        error.__cause__ = Exception(1213)
        error.__cause__.sqlstate = "40P01"
        error.__cause__.sqlite_errorcode = 5
        raise error

    monkeypatch.setattr("django_hilo.attempts._once", fail)
    assert return_ranges() == 0


@pytest.fixture
def two_schemas():
    """A second schema, with tables of its own, on PostgreSQL."""
    tables = ("django_hilo_hilodocument", "django_hilo_serverprefix", "records_order")
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA tenant")
        for table in tables:
            cursor.execute(
                f"CREATE TABLE tenant.{table} (LIKE public.{table} INCLUDING ALL)"
            )
    yield
    vars(connections["default"]).pop("schema_name", None)
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO public")
        cursor.execute("DROP SCHEMA tenant CASCADE")


@pytest.mark.skipif(CHOSEN != "postgres", reason="schemas")
class TestSchemas:
    def use(self, path: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET search_path TO {path}")

    def test_the_own_connection_works_in_the_schema_of_the_caller(self, two_schemas):
        Order.objects.create()
        vars(connections["default"])["schema_name"] = "tenant"
        self.use("tenant")
        with transaction.atomic():
            assert Order.objects.create().id == "orders/1-A"
            assert counter().max == 32
        assert Order.objects.create().id == "orders/2-A"
        with connection.cursor() as cursor:
            cursor.execute("SELECT max FROM public.django_hilo_hilodocument")
            assert cursor.fetchall() == [(32,)]


@pytest.mark.skipif(CHOSEN != "postgres", reason="COPY")
def test_ids_during_a_copy():
    if not hasattr(connection.cursor().cursor, "copy"):
        pytest.skip("psycopg 3's COPY")
    with (
        transaction.atomic(),
        connection.cursor() as cursor,
        cursor.cursor.copy("COPY records_order (id, name) FROM STDIN") as rows,
    ):
        for _ in range(40):
            rows.write_row((next_id(Order), ""))
    assert Order.objects.count() == 40


def test_an_explicit_id_in_an_earlier_hook():
    def insert():
        with transaction.atomic():
            Order(id="orders/5-A").save()

    with transaction.atomic():
        transaction.on_commit(insert)
        Order.objects.create()
    assert len({Order.objects.create().id for _ in range(40)}) == 40


def test_a_query_in_an_earlier_hook_costs_no_range():
    ids = []
    for _ in range(5):
        with transaction.atomic():
            transaction.on_commit(Order.objects.count)
            ids.append(Order.objects.create().id)
    assert ids == [f"orders/{number}-A" for number in range(1, 6)]


@pytest.mark.parametrize("atomic", [True, False])
def test_explicit_and_missing_ids_in_one_bulk_create(atomic):
    block = transaction.atomic() if atomic else nullcontext()
    with block:
        Order.objects.bulk_create([Order(id="orders/1-A"), Order()])
        Order.objects.create()
        Order.objects.bulk_create([Order(id="orders/40-A"), Order(), Order()])
    assert Order.objects.count() == 6


def test_ids_of_plain_managers_raise_no_floor():
    with transaction.atomic():
        Plain.objects.bulk_create([Plain() for _ in range(40)])
        Plain.objects.bulk_create([Plain()])
    document = HiLoDocument.objects.get(collection="plain-things")
    assert (document.floor, Plain.objects.count()) == (0, 41)


@pytest.mark.skipif(CHOSEN != "postgres", reason="SQL as bytes")
def test_sql_as_bytes():
    with transaction.atomic(), connection.cursor() as cursor:
        Order(id="orders/5-A").save()
        cursor.execute(b"SELECT 1")
