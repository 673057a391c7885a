"""bulk_create() does not wait for each of its INSERTs, where PostgreSQL lets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage
from django.db import Error, IntegrityError, connection, models, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet
from django_hilo.pipelines import AHEAD, ROWS, may_pipeline
from tests.databases import CHOSEN
from tests.numbers.models import Item
from tests.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True)
# MariaDB knows itself which keys are unique.
UNIQUE: dict[str, Any] = {} if CHOSEN == "mariadb" else {"unique_fields": ["id"]}
UPDATES: dict[str, Any] = {"update_conflicts": True, "update_fields": ["name"]}


class Insert(NamedTuple):
    """An INSERT of Django's, and whether it was sent before others were answered."""

    rows: int
    is_ahead: bool
    returns: bool


@pytest.fixture
def inserts(monkeypatch: pytest.MonkeyPatch) -> list[Insert]:
    """Note what is inserted from now on."""
    found: list[Insert] = []
    queryset: Any = models.QuerySet
    insert = queryset._insert

    def note(
        self: Any, objs: Any, fields: Any, returning_fields: Any = None, **rest: Any
    ) -> Any:
        if self.model._meta.app_label != "django_hilo":
            pgconn = getattr(connection.connection, "pgconn", None)
            is_ahead = bool(pgconn and pgconn.pipeline_status)
            found.append(Insert(len(objs), is_ahead, bool(returning_fields)))
        return insert(self, objs, fields, returning_fields, **rest)

    monkeypatch.setattr(queryset, "_insert", note)
    return found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ten rows be what one statement inserts."""
    monkeypatch.setattr("django_hilo.managers.ROWS", 10)


@pytest.fixture
def pipelines() -> None:
    # The wrapper of a TestCase's ranges goes with the next statement.
    Order.objects.exists()
    if not may_pipeline(connection, []):
        assert CHOSEN != "postgres" or not hasattr(connection.connection, "pipeline")
        pytest.skip("not with this driver")


@contextmanager
def table_of(model: type[models.Model]) -> Iterator[None]:
    with connection.schema_editor() as editor:
        editor.create_model(model)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(model)


def names(model: Any) -> list[str]:
    return sorted(model.objects.values_list("name", flat=True))


@pytest.mark.usefixtures("pipelines")
class TestPipelines:
    @pytest.mark.parametrize("model", [Order, Item])
    def test_each_statement_is_sent_before_those_before_it_are_answered(
        self, inserts, model
    ):
        objects = [model(name=f"{n:04}") for n in range(2 * ROWS + 1)]
        model.objects.bulk_create(objects)
        assert [each.rows for each in inserts] == [ROWS, ROWS, 1]
        assert {(each.is_ahead, each.returns) for each in inserts} == {(True, False)}
        stored = dict(model.objects.values_list("pk", "name"))
        assert stored == {each.pk: each.name for each in objects}
        assert not any(each._state.adding for each in objects)

    def test_a_batch_size_of_the_callers_is_kept(self, inserts):
        Order.objects.bulk_create([Order() for _ in range(10)], batch_size=4)
        assert [(each.rows, each.is_ahead) for each in inserts] == [
            (4, True),
            (4, True),
            (2, True),
        ]

    def test_one_statement_waits_for_itself(self, few, inserts):
        Order.objects.bulk_create([Order() for _ in range(10)])
        Order.objects.bulk_create([Order() for _ in range(30)], batch_size=30)
        assert [(each.rows, each.is_ahead) for each in inserts] == [
            (10, False),
            (30, False),
        ]

    def test_no_more_are_under_way_than_fit_in_memory(self, monkeypatch):
        from psycopg import Pipeline

        waiting: list[int] = []
        sync = Pipeline.sync

        def note(self: Any) -> None:
            waiting.append(len(self.result_queue))
            sync(self)

        monkeypatch.setattr(Pipeline, "sync", note)
        objects = [Order() for _ in range(2 * AHEAD + 1)]
        Order.objects.bulk_create(objects, batch_size=1)
        assert len(waiting) == 3
        assert max(waiting) <= AHEAD + 1  # with BEGIN
        assert Order.objects.count() == len(objects)

    def test_statements_are_noted_as_they_always_are(self, few):
        with CaptureQueriesContext(connection) as queries:
            Order.objects.bulk_create([Order() for _ in range(30)])
        sent = [query["sql"] for query in queries.captured_queries]
        assert sum('INSERT INTO "records_order"' in sql for sql in sent) == 3


class TestOneByOne:
    """Each statement is answered before the next is sent."""

    @pytest.mark.parametrize("options", [{"ignore_conflicts": True}, UPDATES])
    def test_conflicts(self, few, inserts, options):
        given = {**options, **UNIQUE} if options == UPDATES else options
        Order.objects.bulk_create([Order() for _ in range(30)], **given)
        assert not any(each.is_ahead for each in inserts)
        assert Order.objects.count() == 30

    def test_wrappers_of_statements(self, few, inserts):
        """They add statements, and read counts of rows."""

        def execute(go_on: Any, sql: str, *rest: Any) -> Any:
            return go_on(sql, *rest)

        with connection.execute_wrapper(execute):
            Order.objects.bulk_create([Order() for _ in range(30)])
        assert not any(each.is_ahead for each in inserts)

    @isolate_apps("tests.records")
    @pytest.mark.parametrize("kind", ["own", "file"])
    def test_fields_that_may_use_the_connection(self, few, inserts, kind):
        class Own(models.CharField):
            def pre_save(self, model_instance: models.Model, add: bool) -> Any:
                return Order.objects.filter(name="left").update(name="taken")

        storage = InMemoryStorage()

        class Document(models.Model):
            id = HiLoField(primary_key=True)
            text: Any = (
                Own(max_length=9)
                if kind == "own"
                else models.FileField(storage=storage)
            )

            objects = HiLoManager()

            class Meta:
                app_label = "records"

        with table_of(Document):
            Order.objects.create(name="left")
            documents = [Document(text=ContentFile(b"x", name="x")) for _ in range(30)]
            inserts.clear()
            Document.objects.bulk_create(documents)
            assert not any(each.is_ahead for each in inserts)
            if kind == "own":
                texts = Document.objects.values_list("text", flat=True)
                assert sorted(texts) == [*["0"] * 29, "1"]

    @isolate_apps("tests.records")
    def test_what_the_database_gives_comes_back(self, few, inserts):
        class Dated(models.Model):
            id = HiLoField(primary_key=True)
            at = models.DateTimeField(db_default=Now())

            objects = HiLoManager()

            class Meta:
                app_label = "records"

        with table_of(Dated):
            objects = Dated.objects.bulk_create([Dated() for _ in range(25)])
            assert not any(each.is_ahead for each in inserts)
            if connection.features.can_return_rows_from_bulk_insert:
                assert all(each.at.year > 2000 for each in objects)
            assert Dated.objects.count() == 25


class TestErrors:
    @pytest.mark.parametrize("wrong", [0, 15, 29])
    @pytest.mark.parametrize("around", [nullcontext, transaction.atomic])
    def test_no_row_is_left_and_no_object_counts_as_saved(self, few, wrong, around):
        taken = Order.objects.create(name="taken").pk
        objects = [Order(name="new") for _ in range(30)]
        objects[wrong].pk = taken
        with pytest.raises(IntegrityError), around():
            Order.objects.bulk_create(objects)
        assert all(each._state.adding for each in objects)
        assert names(Order) == ["taken"]
        objects[wrong].pk = None
        Order.objects.bulk_create(objects)
        assert names(Order) == [*["new"] * 30, "taken"]

    # Django 6.1 opens no transaction of its own around one statement.
    @pytest.mark.usefixtures("pipelines")
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

    @pytest.mark.usefixtures("pipelines")
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

    def test_they_are_not_asked_for(self, inserts):
        made = Item.objects.bulk_create([Item(name="a"), Item(id=77, name="b")])
        assert [each.returns for each in inserts] == [False]
        assert sorted(Item.objects.values_list("pk", "name")) == sorted(
            (each.pk, each.name) for each in made
        )

    def test_the_defaults_are(self, inserts):
        objects = [Item(name=name) for name in "abc"]
        # What is there keeps its key, which only the database knows.
        Item.objects.bulk_create(objects, **UPDATES, **UNIQUE)
        returns = connection.features.can_return_rows_from_bulk_insert
        assert [each.returns for each in inserts] == [returns]

    def test_those_of_another_type_are(self, inserts):
        Item.objects.bulk_create([Item(id="5", name="a"), Item(id=True, name="b")])
        returns = connection.features.can_return_rows_from_bulk_insert
        assert [each.returns for each in inserts] == [returns]
        assert sorted(Item.objects.values_list("pk", "name")) == [(1, "b"), (5, "a")]

    @pytest.mark.usefixtures("pipelines")
    def test_those_of_an_expression_are(self, inserts):
        item = Item(name="a")
        item.pk = models.expressions.RawSQL("41 + 1", ())
        Item.objects.bulk_create([item])
        assert [each.returns for each in inserts] == [True]
        assert Item.objects.get().pk == 42

    @isolate_apps("tests.records")
    def test_saves_by_a_manager_of_ones_own(self, inserts):
        class Page(models.Model):
            id = HiLoBigAutoField(primary_key=True)

            objects = models.manager.BaseManager.from_queryset(HiLoQuerySet)()

            class Meta:
                app_label = "records"
                base_manager_name = "objects"

        with table_of(Page):
            page = Page()
            page.save()
            assert [each.returns for each in inserts] == [False]
            assert Page.objects.get().pk == page.pk
