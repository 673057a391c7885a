"""bulk_create() does not wait for each of its INSERTs, where PostgreSQL lets it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import Error, IntegrityError, connection, models, transaction
from django.db.models.functions import Now
from django.test.utils import isolate_apps

from django_hilo.fields import HiLoField
from django_hilo.managers import HiLoManager
from django_hilo.pipelines import ROWS, has_pipelines
from tests.databases import CHOSEN
from tests.numbers.models import Item
from tests.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's own")

Statements = list[tuple[str, bool]]


@contextmanager
def inserts() -> Iterator[Statements]:
    """Note the INSERTs of rows, and whether each was sent in a pipeline."""
    found: Statements = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if re.match(r"INSERT (IGNORE )?INTO .(records|numbers)_", sql):
            pgconn = getattr(connection.connection, "pgconn", None)
            found.append((sql, bool(pgconn and pgconn.pipeline_status)))
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ten rows be what one statement inserts."""
    monkeypatch.setattr("django_hilo.managers.ROWS", 10)


needs_pipelines = pytest.mark.usefixtures("pipelines")


@pytest.fixture
def pipelines() -> None:
    if not has_pipelines(connection):
        pytest.skip("not with this driver")


# MariaDB knows itself which keys are unique.
UNIQUE: dict[str, Any] = {} if CHOSEN == "mariadb" else {"unique_fields": ["id"]}


def names(model: type[models.Model]) -> list[str]:
    return sorted(model._base_manager.values_list("name", flat=True))


class TestPipelines:
    @on_postgresql
    @needs_pipelines
    @pytest.mark.parametrize("model", [Order, Item])
    def test_each_statement_is_sent_before_those_before_it_are_answered(self, model):
        objects = [model(name=f"{n:04}") for n in range(2 * ROWS + 1)]
        with inserts() as found:
            model.objects.bulk_create(objects)
        assert [is_sent_ahead for _, is_sent_ahead in found] == [True] * 3
        stored = dict(model.objects.values_list("pk", "name"))
        assert stored == {each.pk: each.name for each in objects}
        assert not any(each._state.adding for each in objects)

    @on_postgresql
    @needs_pipelines
    def test_a_batch_size_of_the_callers_is_kept(self):
        with inserts() as found:
            Order.objects.bulk_create([Order() for _ in range(10)], batch_size=4)
        assert [is_sent_ahead for _, is_sent_ahead in found] == [True] * 3

    @on_postgresql
    @needs_pipelines
    def test_one_statement_waits_for_itself(self, few):
        with inserts() as found:
            Order.objects.bulk_create([Order() for _ in range(10)])
            Order.objects.bulk_create([Order() for _ in range(30)], batch_size=30)
        assert [is_sent_ahead for _, is_sent_ahead in found] == [False, False]

    @on_postgresql
    @pytest.mark.parametrize("option", ["ignore_conflicts", "update_conflicts"])
    def test_conflicts_are_left_to_one_statement(self, few, option):
        options: dict[str, Any] = {option: True}
        if option == "update_conflicts":
            options |= {"update_fields": ["name"], **UNIQUE}
        with inserts() as found:
            Order.objects.bulk_create([Order() for _ in range(30)], **options)
        assert [is_sent_ahead for _, is_sent_ahead in found] == [False]

    @isolate_apps("tests.records")
    def test_what_the_database_gives_comes_back(self, few):
        class Dated(models.Model):
            id = HiLoField(primary_key=True)
            at = models.DateTimeField(db_default=Now())

            objects = HiLoManager()

            class Meta:
                app_label = "records"

        with connection.schema_editor() as editor:
            editor.create_model(Dated)
        try:
            objects = Dated.objects.bulk_create([Dated() for _ in range(25)])
            if connection.features.can_return_rows_from_bulk_insert:
                assert all(each.at.year > 2000 for each in objects)
            assert Dated.objects.count() == 25
        finally:
            with connection.schema_editor() as editor:
                editor.delete_model(Dated)


class TestErrors:
    @pytest.mark.parametrize("wrong", [0, 15, 29])
    @pytest.mark.parametrize("is_in_atomic", [False, True])
    def test_no_row_is_left_and_no_object_counts_as_saved(
        self, few, wrong, is_in_atomic
    ):
        taken = Order.objects.create(name="taken").pk
        objects = [Order(name="new") for _ in range(30)]
        objects[wrong].pk = taken
        with pytest.raises(IntegrityError):
            if is_in_atomic:
                with transaction.atomic():
                    Order.objects.bulk_create(objects)
            else:
                Order.objects.bulk_create(objects)
        assert all(each._state.adding for each in objects)
        assert names(Order) == ["taken"]
        objects[wrong].pk = None
        Order.objects.bulk_create(objects)
        assert names(Order) == [*["new"] * 30, "taken"]

    def test_a_transaction_that_catches_it_outside_of_a_savepoint_is_over(self, few):
        taken = Order.objects.create(name="taken").pk
        objects = [Order(pk=taken if n == 3 else None) for n in range(30)]
        with transaction.atomic():
            with pytest.raises(IntegrityError):
                Order.objects.bulk_create(objects)
            with pytest.raises(transaction.TransactionManagementError):
                Order.objects.count()
            transaction.set_rollback(True)

    def test_a_savepoint_takes_back_what_the_statements_before_it_wrote(self, few):
        taken = Order.objects.create(name="taken").pk
        objects = [Order(pk=taken if n == 25 else None) for n in range(30)]
        with transaction.atomic():
            Order.objects.create(name="kept")
            with pytest.raises(IntegrityError), transaction.atomic():
                Order.objects.bulk_create(objects)
        assert names(Order) == ["kept", "taken"]

    def test_what_python_raises_between_two_statements(self, few, monkeypatch):
        def get_db_prep_save(value: Any, connection: Any) -> Any:
            if value == "wrong":
                raise ValueError("Here it stops.")
            return value

        field = Order._meta.get_field("name")
        monkeypatch.setattr(field, "get_db_prep_save", get_db_prep_save)
        objects = [Order(name="wrong" if n == 25 else "") for n in range(30)]
        with pytest.raises(ValueError, match="Here it stops"):
            Order.objects.bulk_create(objects)
        assert names(Order) == []

    @on_postgresql
    @needs_pipelines
    def test_a_connection_that_is_lost(self, few):
        with pytest.raises(Error), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                [pid] = cursor.fetchone()
            other = connection.copy()
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
            other.close()
            Order.objects.bulk_create([Order() for _ in range(30)])
        connection.close()
        assert names(Order) == []


class TestKeysThatAreGiven:
    """Django asks for each key of an integer field to come back."""

    def returned(self, found: Statements) -> list[bool]:
        return ["RETURNING" in sql for sql, _ in found]

    def test_they_are_not_asked_for(self):
        with inserts() as found:
            made = Item.objects.bulk_create([Item(name="a"), Item(id=77, name="b")])
        assert self.returned(found) == [False]
        assert sorted(Item.objects.values_list("pk", "name")) == sorted(
            (each.pk, each.name) for each in made
        )

    def test_the_defaults_are(self):
        objects = [Item(name=name) for name in "abc"]
        returns = connection.features.can_return_rows_from_bulk_insert
        with inserts() as found:
            # What is there keeps its key, which only the database knows.
            Item.objects.bulk_create(
                objects, update_conflicts=True, update_fields=["name"], **UNIQUE
            )
        assert self.returned(found) == [returns]

    @on_postgresql
    def test_those_of_an_expression_are(self):
        item = Item(name="a")
        item.pk = models.expressions.RawSQL("41 + 1", ())
        with inserts() as found:
            Item.objects.bulk_create([item])
        assert self.returned(found) == [True]
        assert Item.objects.get().pk == 42
