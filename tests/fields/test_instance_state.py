"""What is known of ids on their instances, where fields are deferred or named alike."""

import gc

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.fields import HiLoBigAutoField, HiLoField
from tests.apps.numbers.models import Item
from tests.apps.records.models import Letter, Numbered, Order, Restaurant


@pytest.mark.django_db(databases=["default", "other"])
def test_deferred_ids_that_are_copied_are_seen():
    Numbered.objects.create(pk=1_000, number="numbers/40-B")
    Numbered.objects.using("other").bulk_create(Numbered.objects.defer("number"))
    made = Numbered.objects.using("other").create()
    assert made.number == "numbers/41-B"


@pytest.mark.django_db
def test_ids_of_deferred_rows_are_assigned_without_loading_them():
    Numbered.objects.bulk_create([Numbered() for _ in range(3)])
    rows = list(Numbered.objects.defer("number"))
    for row in rows:
        row._state.adding = True
    with CaptureQueriesContext(connection) as queries:
        Numbered.objects.assign_ids(rows)
    assert not queries.captured_queries


WRITES = {
    "save": lambda copy, rows: copy.save(using=rows.db, force_insert=True),
    "bulk_create": lambda copy, rows: rows.bulk_create([copy]),
    "assign_ids": lambda copy, rows: rows.assign_ids([copy]),
}


def refusal_of(copy: models.Model, write: str, using: str) -> str:
    copy.pk = None
    rows = type(copy)._default_manager.using(using)
    told = pytest.raises(Exception, match=r"retrieve deferred|does not exist")
    with told as refused, transaction.atomic(using):
        WRITES[write](copy, rows.all())
    assert copy.pk is None
    return refused.typename


@pytest.mark.django_db(databases=["default", "other"])
@pytest.mark.parametrize("using", ["default", "other"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("model", [Order, Letter, Item])
def test_a_copy_that_lacks_a_field_gets_no_id(model, write, using):
    """As with BigAutoField. By its new id it would read another row, or none."""
    model.objects.create(name="mine")
    copies = [model.objects.defer("name").get() for _ in range(2)]
    plain = ContentType.objects.defer("model").first()
    expected = refusal_of(plain, "save", using)
    assert refusal_of(copies[0], write, using) == expected
    copies[1].name, copies[1].pk = "known", None
    copies[1].save(using=using, force_insert=True)
    assert copies[1].pk is not None


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["name", "stars"])
def test_nor_does_a_copy_of_a_child(name):
    Restaurant.objects.create()
    copy = Restaurant.objects.defer(name).get()
    copy.id = None
    refusal_of(copy, "save", "default")
    assert copy.id is None


@pytest.mark.django_db
def test_a_note_costs_an_object_no_dict():
    """Python has room for it in the object, unless others came first."""
    order, item = Order(), Item()
    Order.objects.assign_ids([order])
    Item.objects.assign_ids([item])
    for each in (order, item):
        referents = gc.get_referents(each._state)
        assert any(isinstance(found, tuple) for found in referents)
        dicts = [found for found in referents if isinstance(found, dict)]
        assert not any("hilo_given_id" in found for found in dicts)


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
