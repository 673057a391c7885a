"""Deploy checks of trouble ahead: counters under their tables, numbers that run out."""

from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from django.core import checks
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from django_hilo._allocation.find import resolve
from django_hilo.checks import deployment
from django_hilo.checks.deployment import check_servers
from django_hilo.counters import next_gapless_numbers, reserve
from django_hilo.generator import next_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter, HiLoDocument, ServerPrefix
from django_hilo.sources import hibernate
from tests.apps.numbers.models import Crate, Item
from tests.apps.records.models import (
    Claim,
    Invoice,
    Letter,
    Numbered,
    Order,
    Reply,
    Sortable,
    Worker,
)
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(databases=["default", "other"]),
]
on_a_server = pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one integer")


def found(id: str, using: str = "default") -> list[checks.CheckMessage]:
    messages = list(check_servers([using]))
    return [message for message in messages if message.id == f"django_hilo.{id}"]


def fall_back(to: int, using: str = "default") -> None:
    """Let all counters be what an old backup has of them."""
    HiLoDocument.objects.using(using).update(max=to, floor=0)


class TestACounterUnderItsTable:
    def test_that_fell_back(self):
        Order.objects.bulk_create([Order() for _ in range(40)])
        assert not found("W031")
        fall_back(8)
        (message,) = found("W031")
        assert message.level == checks.WARNING
        assert message.obj == Order._meta.pk
        for part in ("'default'", "'orders/A'", "is at 8", "records.Order", "'orders/"):
            assert part in message.msg
        assert message.hint.endswith("manage.py hilo_raise_max --database=default")
        call_command("hilo_raise_max", verbosity=0)
        assert not found("W031")

    def test_on_another_database(self):
        Order.objects.using("other").create()
        fall_back(0, "other")
        assert not found("W031")
        assert "'orders/1-B'" in found("W031", "other")[0].msg

    @pytest.mark.parametrize("number", [9, 40, 41, 9 + 32 * 99])
    def test_finds_the_next_numbers_and_the_first_of_the_next_ranges(self, number):
        reserve("orders", 8)
        Order.objects.bulk_create([Order(id=f"orders/{number}-A")])
        fall_back(8)
        assert f"'orders/{number}-A'" in found("W031")[0].msg

    @pytest.mark.parametrize(
        "id", ["orders/8-A", "orders/9-B", "orders/9", "sales/9-A", "orders/9-A$x", "9"]
    )
    def test_takes_no_other_ids_for_its_own(self, id):
        reserve("orders", 8)
        Order.objects.bulk_create([Order(id=id)])
        fall_back(8)
        assert not found("W031")

    def test_that_is_missing(self):
        Order.objects.create()
        HiLoDocument.objects.all().delete()
        assert "is at 0" in found("W031")[0].msg

    def test_of_anchored_ids(self):
        order = Order.objects.create()
        Invoice.objects.bulk_create([Invoice(order=order) for _ in range(20)])
        assert not found("W031")
        HiLoDocument.objects.filter(collection="invoices").update(max=10)
        (message,) = found("W031")
        assert "'invoices/11-A$orders/1-A'" in message.msg

    def test_anchors_are_looked_for_by_the_whole_number(self):
        order = Order.objects.create()
        Invoice.objects.bulk_create([Invoice(order=order) for _ in range(20)])
        Invoice.objects.exclude(id__number=1).exclude(id__number=20).delete()
        HiLoDocument.objects.filter(collection="invoices").update(max=1)
        (message,) = found("W031")
        assert "'invoices/20-A$" in message.msg

    def test_with_a_width_and_a_prefix(self):
        ServerPrefix.objects.create(node_tag="A", prefix="North/")
        Sortable.objects.create()
        fall_back(0)
        assert "'sortables/North/0000000000000000001-A'" in found("W031")[0].msg

    def test_beside_the_key(self):
        Numbered.objects.create()
        fall_back(0)
        assert "'numbers/1-A'" in found("W031")[0].msg

    def test_without_an_index_nothing_is_read(self, monkeypatch):
        Numbered.objects.create()
        fall_back(0)
        field = Numbered._meta.get_field("number")
        monkeypatch.setattr(field, "unique", False)
        assert not found("W031")

    def test_of_ids_by_a_convention(self):
        Worker.objects.create(name="ann")
        fall_back(0)
        assert not found("W031")

    def test_of_integer_keys_that_start_over_the_rows_by_themselves(self):
        Item.objects.create()
        fall_back(0)
        assert not found("W031")

    def test_a_range_reserved_meanwhile(self, monkeypatch):
        fall_back(0)
        look = deployment._next_id

        def meanwhile(field, *rest):
            if field.model is Order and not Order.objects.exists():
                Order.objects.create()
            return look(field, *rest)

        monkeypatch.setattr(deployment, "_next_id", meanwhile)
        assert not found("W031")
        assert Order.objects.exists()

    def test_of_gapless_numbers(self):
        Letter.objects.bulk_create([Letter() for _ in range(5)])
        Claim.objects.create(id="claims|")
        Reply.objects.create(id="replies|", claim=Claim.objects.get())
        assert not found("W031")
        GaplessCounter.objects.update(last=F("last") - 1)
        said = " ".join(message.msg for message in found("W031"))
        assert (
            "gapless counter 'letters' is at 4, but records.Letter already has" in said
        )
        assert "'letters/5'" in said
        assert "'claims/1'" in said
        assert "'replies/1$claims/1'" in said
        call_command("hilo_raise_max", verbosity=0)
        assert not found("W031")

    @pytest.mark.django_db(transaction=True)
    def test_of_another_system(self, settings, other_counter):
        settings.HILO = {"SOURCES": {"numbers_item": hibernate.HiLo(9, other_counter)}}
        Item.objects.create()
        assert not found("W031")
        execute(f"UPDATE {other_counter} SET next_hi = 1")
        assert "but numbers.Item already has '" in found("W031")[0].msg

    def test_that_cannot_be_read_is_told_by_another_check(self, settings):
        settings.HILO = {"SOURCES": {"orders": hibernate.HiLo(9, "no_such_row")}}
        Letter.objects.bulk_create([Letter() for _ in range(5)])
        GaplessCounter.objects.update(last=0)
        assert len(found("W031")) == 1

    def test_without_a_table(self, monkeypatch):
        monkeypatch.setattr(Order._meta, "db_table", "no_such_table")
        Letter.objects.bulk_create([Letter() for _ in range(5)])
        GaplessCounter.objects.update(last=0)
        assert [each.obj for each in found("W031")] == [Letter._meta.pk]
        # Not by number: a busy server may be told of besides.
        assert not [m for m in check_servers(["default"]) if "no_such" in m.msg]

    def test_where_the_database_fails(self, monkeypatch):
        fail = Mock(side_effect=OperationalError("no route to host"))
        monkeypatch.setattr(deployment, "_low_counter", fail)
        assert "no route to host" in found("I030")[0].msg


@pytest.fixture
def other_counter() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE ahead_counter (next_hi BIGINT)")
        cursor.execute("INSERT INTO ahead_counter VALUES (5)")
        yield "ahead_counter"
        cursor.execute("DROP TABLE ahead_counter")


class TestWhatItCosts:
    def test_a_bounded_number_of_looks_by_an_index(self):
        """So that ten million rows are as good as ten."""
        order = Order.objects.create()
        Invoice.objects.create(order=order)
        with CaptureQueriesContext(connection) as queries:
            assert not found("W031")
        looks = [
            query["sql"]
            for query in queries
            if "records_order" in query["sql"] or "records_invoice" in query["sql"]
        ]
        # One for all ids that are known as a whole, one for each that is anchored.
        of_orders = [sql for sql in looks if 'records_order"' in sql.replace("`", '"')]
        assert len(of_orders) == 1
        assert len(looks) <= 1 + 32 + 100
        with connection.cursor() as cursor:
            if CHOSEN == "postgres":
                cursor.execute("SET LOCAL enable_seqscan = off")
            for sql in of_orders + looks[-1:]:
                assert self.uses_index(cursor, sql), [sql, self.plan]

    def uses_index(self, cursor, sql: str) -> bool:
        ways = {"sqlite": "QUERY PLAN", "mysql": "FORMAT=TRADITIONAL"}
        cursor.execute(f"EXPLAIN {ways.get(CHOSEN, '')} {sql}")
        columns = [column[0] for column in cursor.description]
        self.plan = plan = [
            dict(zip(columns, row, strict=True)) for row in cursor.fetchall()
        ]
        if IS_MYSQL:
            return all(row["possible_keys"] or not row["table"] for row in plan)
        # SEARCH, and not SCAN: only a part of the index is read.
        return ("Index Cond" if CHOSEN == "postgres" else "SEARCH") in str(plan)

    def test_a_check_that_is_not_for_deployment_asks_nothing(self):
        Order.objects.create()
        fall_back(0)
        for databases in (None, ["default"]):
            messages = checks.run_checks(databases=databases)
            assert not {m.id for m in messages} & {"django_hilo.W031"}
        messages = checks.run_checks(
            databases=["default"], include_deployment_checks=True
        )
        assert {m.id for m in messages} & {"django_hilo.W031"}


class TestTheEndOfTheNumbers:
    NEAR = MAX_NUMBER // 10 * 9

    def test_of_a_counter(self):
        HiLoDocument.objects.create(collection="a", node_tag="A", max=self.NEAR)
        assert not found("W032")
        HiLoDocument.objects.create(collection="b", node_tag="B", max=self.NEAR + 1)
        HiLoDocument.objects.create(collection="c", floor=MAX_NUMBER)
        GaplessCounter.objects.create(collection="d", last=self.NEAR + 1)
        assert [message.msg.partition(" is at ")[0] for message in found("W032")] == [
            "The counter 'b/B' on 'default'",
            "The counter 'c/' on 'default'",
            "The gapless counter 'd' on 'default'",
        ]

    def test_of_a_width(self, monkeypatch):
        monkeypatch.setattr(Sortable._meta.pk, "width", 4)
        HiLoDocument.objects.create(collection="sortables", node_tag="A", max=8991)
        assert not found("W033")
        HiLoDocument.objects.update(max=8992)
        (message,) = found("W033")
        assert "records.Sortable are at 8992, and width=4 allows at most 9999" in (
            message.msg
        )
        assert "id__number" in message.hint

    def test_of_max_length(self, monkeypatch):
        monkeypatch.setattr(Order._meta.pk, "max_length", len("orders/9999-A"))
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=950)
        assert not found("W033")
        ServerPrefix.objects.create(node_tag="A", prefix="N")
        assert "max_length=13 allows at most 999." in found("W033")[0].msg
        ServerPrefix.objects.update(prefix="NorthServer/")
        assert "max_length=13 allows at most 0." in found("W033")[0].msg

    @on_a_server
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        ("kind", "highest"), [("integer", 2_147_483_647), ("smallint", 32_767)]
    )
    def test_of_a_column(self, kind, highest):
        """A table that somebody else made, or that was narrowed by hand."""
        source = resolve(Crate).source
        assert not found("W033")
        try:
            self.alter(kind)
            source.raise_floor("default", highest // 10 * 9)
            assert not found("W033")
            next_number(Crate)
            (message,) = found("W033")
            assert "numbers.Crate" in message.msg
            assert f"column 'id' allows at most {highest}." in message.msg
        finally:
            if CHOSEN == "postgres":
                # It has a type of its own, which changes with the column's.
                execute("ALTER SEQUENCE numbers_crate_id_seq RESTART")
            self.alter("bigint")

    def alter(self, kind: str) -> None:
        change = (
            f"MODIFY id {kind} AUTO_INCREMENT"
            if IS_MYSQL
            else f"ALTER COLUMN id TYPE {kind}"
        )
        execute(f"ALTER TABLE numbers_crate {change}")


def test_nothing_is_found_in_a_project_that_is_well():
    Order.objects.create()
    next_gapless_numbers("letters", 3)
    assert not [m for m in check_servers(["default"]) if m.id[-3:] >= "031"]
