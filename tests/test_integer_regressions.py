"""What a review found in integer keys, and must not come back."""

from __future__ import annotations

import logging
from collections import deque
from decimal import Decimal

import pytest
from django.apps import apps
from django.db import connection

from django_hilo import pool
from django_hilo.columns import KeyColumn
from django_hilo.exceptions import HiLoError, TableMissing
from django_hilo.generator import next_number, next_numbers
from django_hilo.models import HiLoDocument
from django_hilo.ranges import Range, Reservation
from django_hilo.sources.column import ColumnCounter, ColumnSequence
from django_hilo.stock import Held, take_from
from django_hilo.tables import counter_fields
from tests.databases import CHOSEN
from tests.foreign import needs_postgresql
from tests.numbers.models import Item, Tag

pytestmark = pytest.mark.django_db(transaction=True)


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class TestConflicts:
    """An object must not keep the number of no row."""

    @pytest.fixture(autouse=True)
    def unique_names(self):
        execute("CREATE UNIQUE INDEX numbers_item_names ON numbers_item (name)")
        yield
        table = " ON numbers_item" if CHOSEN == "mariadb" else ""
        execute(f"DROP INDEX numbers_item_names{table}")

    @pytest.mark.parametrize("manager", ["objects", "_base_manager"])
    def test_updated(self, manager):
        old = Item.objects.create(name="a")
        [new] = getattr(Item, manager).bulk_create(
            [Item(name="a")],
            update_conflicts=True,
            update_fields=["name"],
            **({} if CHOSEN == "mariadb" else {"unique_fields": ["name"]}),
        )
        assert Item.objects.get().pk == old.pk
        if CHOSEN != "mariadb":
            assert new.pk == old.pk
        elif manager == "objects":
            assert new.pk is None

    def test_ignored(self):
        Item.objects.create(name="a")
        made = Item.objects.bulk_create(
            [Item(name="a"), Item(name="b")], ignore_conflicts=True
        )
        assert [each.pk for each in made] == [None, None]
        assert Item.objects.count() == 2
        third = Item.objects.create(name="c").pk
        assert third not in Item.objects.exclude(name="c").values_list("pk", flat=True)


class TestWithoutOurTables:
    @pytest.fixture(autouse=True)
    def missing(self, monkeypatch):
        if CHOSEN == "postgres":
            pytest.skip("its sequence needs none of our tables")
        monkeypatch.setattr(HiLoDocument._meta, "db_table", "no_such_table")

    def test_explicit_keys_are_saved(self, caplog):
        with caplog.at_level(logging.WARNING, "django_hilo"):
            Item.objects.create(pk=5)
        assert Item.objects.get().pk == 5
        assert "Traceback" not in caplog.text

    def test_new_keys_come_from_the_default_and_that_is_told(self, caplog):
        with caplog.at_level(logging.WARNING, "django_hilo"):
            item = Item.objects.create()
        assert Item.objects.get().pk == item.pk
        assert "numbers.Item is numbered by the database" in caplog.text

    def test_numbers_alone_are_an_error(self):
        with pytest.raises(TableMissing, match="migrate django_hilo"):
            next_number(Item)


class TestExplicitKeys:
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


@needs_postgresql
class TestSteps:
    """Sites that share numbers by steps: odd here, even there."""

    @pytest.fixture(autouse=True)
    def odd(self):
        execute("ALTER SEQUENCE numbers_item_id_seq INCREMENT BY 2 RESTART WITH 1")
        yield
        execute("ALTER SEQUENCE numbers_item_id_seq INCREMENT BY 1")

    def test_a_far_key_changes_no_step(self, new_process):
        Item.objects.create()
        Item.objects.create(pk=30_000_002)
        new_process()
        later = next_numbers(Item, 5)
        assert all(number > 30_000_002 and number % 2 for number in later)

    def test_many_are_few_at_a_time(self):
        numbers = [next_number(Item) for _ in range(5000)]
        assert all(number % 2 for number in numbers)
        assert len(set(numbers)) == 5000
        held = pool.current().counters("default")[0]
        assert len(held._stock._ranges) <= 1024


def test_taking_looks_no_further_than_it_needs():
    looked_at = []

    class Watched(Held):
        @property
        def left(self) -> int:
            looked_at.append(self)
            return super().left

    ranges = deque(
        Watched(Reservation("c", "", Range(n, n), "", "")) for n in range(1, 1001)
    )
    assert [share.low for share in take_from(ranges, 2)] == [1, 2]
    assert len(set(map(id, looked_at))) <= 3


@needs_postgresql
class TestColumns:
    def fault(self, table: str) -> str:
        source = ColumnSequence(KeyColumn(table, "id"), is_historical=False)
        found = source.faults("default")
        assert not any(fault.is_certain for fault in found)
        return " ".join(map(str, found))

    def test_a_view_is_none(self):
        execute("CREATE VIEW some_view AS SELECT 1::bigint AS id")
        try:
            assert self.fault("some_view") == ""
        finally:
            execute("DROP VIEW some_view")

    def test_generated_always(self):
        execute("CREATE TABLE always (id bigint GENERATED ALWAYS AS IDENTITY)")
        try:
            assert "BY DEFAULT" in self.fault("always")
        finally:
            execute("DROP TABLE always")


@pytest.mark.skipif(CHOSEN != "sqlite", reason="it is SQLite's")
class TestSqlite:
    def test_the_table_is_found_in_any_case(self):
        Item.objects.create()
        for name in ("Numbers_ITEM", '"numbers_item"'):
            KeyColumn(name, "id").claim("default", 10**9)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*), max(seq) FROM sqlite_sequence "
                    "WHERE lower(name) LIKE '%numbers_item'"
                )
                assert cursor.fetchone() == (1, 10**9)

    def test_counters_stay_with_the_rows(self, settings):
        settings.HILO = {"DATABASE": "other"}
        target, source = Item._meta.pk.counter_of("default")
        assert target == "default"
        assert isinstance(source, ColumnCounter)


def test_many_to_many_rows_are_counted_in():
    through = Tag.items.through
    assert through in {field.model for field in counter_fields()}
    assert through in set(apps.get_models(include_auto_created=True))
