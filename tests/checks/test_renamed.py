"""The check of models that were renamed, in a database with their rows."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hilo.checks.renamed import check_renamed
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.sql import hide_table

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture
def field(monkeypatch):
    """The key of a model whose rows have ids of its former name."""
    Order.objects.bulk_create([Order(id="purchases/1-A"), Order(id="purchases/2-A")])
    return Order._meta.get_field("id")


def found():
    return list(check_renamed(["default"]))


def test_the_next_id_will_have_another_name(field):
    (message,) = found()
    assert message.id == "django_hilo.W117"
    assert message.obj is field
    assert "start with 'orders'" in message.msg
    assert "such as 'purchases/1-A'" in message.msg
    assert "collection='purchases'" in message.hint


def test_the_remedy_ends_it(field, monkeypatch):
    monkeypatch.setattr(field, "collection", "purchases")
    assert found() == []


def test_after_the_first_id_it_is_silent(field):
    Order.objects.create()
    assert found() == []


@pytest.mark.parametrize(
    ("option", "value"), [("any_id", True), ("convention", lambda order, id: id)]
)
def test_a_field_of_any_ids(field, monkeypatch, option, value):
    monkeypatch.setattr(field, option, value)
    assert found() == []


def test_rows_of_its_own_or_of_no_collection():
    assert found() == [], "an empty table"
    Order.objects.bulk_create([Order(id="ORDERS/7-A")])
    assert found() == []
    Order.objects.all().delete()
    Order.objects.bulk_create([Order(id="anything")])
    HiLoDocument.objects.all().delete()
    assert found() == []


def test_ids_of_another_model_of_the_project():
    Order.objects.bulk_create([Order(id="invoices/7-A")])
    assert found() == []


def test_databases_that_were_not_named(field):
    assert list(check_renamed()) == list(check_renamed(["other"])) == []


def test_one_row_is_read(field):
    with CaptureQueriesContext(connection) as queries:
        found()
    table = f"FROM {connection.ops.quote_name('records_order')}"
    (query,) = [each["sql"] for each in queries if table in each["sql"]]
    assert "LIMIT 1" in query


def test_before_the_first_migration(monkeypatch, field):
    hide_table(HiLoDocument, monkeypatch)
    assert found() == []
    call_command("check", databases=["default"])
    monkeypatch.undo()
    hide_table(Order, monkeypatch)
    assert found() == []
