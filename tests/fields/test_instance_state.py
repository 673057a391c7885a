"""What is known of ids on their instances, where fields are deferred or named alike."""

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.fields import HiLoBigAutoField, HiLoField
from tests.apps.records.models import Numbered, Registered


@pytest.mark.django_db(databases=["default", "other"])
def test_deferred_ids_that_are_copied_are_seen():
    Registered.objects.bulk_create([Registered() for _ in range(3)])
    Registered.objects.using("other").bulk_create(Registered.objects.defer("number"))
    made = Registered.objects.using("other").create()
    assert made.number == "registrations/4"


@pytest.mark.django_db
def test_ids_of_deferred_rows_are_assigned_without_loading_them():
    Numbered.objects.bulk_create([Numbered() for _ in range(3)])
    rows = list(Numbered.objects.defer("number"))
    for row in rows:
        row._state.adding = True
    with CaptureQueriesContext(connection) as queries:
        Numbered.objects.assign_ids(rows)
    assert not queries.captured_queries


@isolate_apps("tests.apps.records")
def test_fields_whose_names_nearly_meet():
    class Stock(models.Model):
        order = HiLoBigAutoField(primary_key=True)
        on_order = HiLoField()
        assigned_order = HiLoField()
        alias_order = HiLoField()

        class Meta:
            app_label = "records"

    stock = Stock()
    fields = Stock._meta.concrete_fields
    for number, field in enumerate(fields):
        field.ids.set_ids([stock], [f"x/{number}"], f"alias{number}", [None])
    found = [field.ids.assigned_for(stock) for field in fields]
    assert found == ["alias0", "alias1", "alias2", "alias3"]
