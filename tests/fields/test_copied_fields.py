"""A history has copies of a model's fields, as django-simple-history makes them."""

import copy
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo._allocation.registry import counter_fields
from django_hilo._operations.locations import gapless_fields
from django_hilo.checks.models import check_managers
from django_hilo.fields import HiLoField
from django_hilo.fields._ids import ids_of
from django_hilo.managers import HiLoManager
from django_hilo.models import GaplessCounter, HiLoDocument
from tests.apps.numbers.models import Item
from tests.apps.records.models import Car, Letter, Order, Plain, PlainLetter

TRANSACTION = ("BEGIN", "COMMIT")


def history_of(
    model: type[models.Model], name: str = "id", **attributes: Any
) -> type[models.Model]:
    """Make a model with a copy of another's field, neither key nor unique."""
    field = copy.copy(model._meta.get_field(name))
    field.primary_key = False
    field.unique = field._unique = False  # unique is cached
    # A history copies before the model has been queried.
    vars(field).pop("cached_col", None)

    class Meta:
        app_label = "records"

    namespace = {
        "__module__": __name__,
        "Meta": Meta,
        "history_id": models.AutoField(primary_key=True),
        name: field,
        **attributes,
    }
    return type(f"HistoryOf{model.__name__}", (models.Model,), namespace)


@pytest.fixture(autouse=True)
def isolated():
    with isolate_apps("tests.apps.records"):
        yield


@pytest.mark.parametrize(("model", "name"), [(Plain, "id"), (PlainLetter, "number")])
@pytest.mark.parametrize("manager", [models.Manager, HiLoManager])
@pytest.mark.django_db(transaction=True)
def test_its_rows_count_no_number(model, name, manager):
    history = history_of(model, name, objects=manager())
    prefix = model._meta.get_field(name).collection_name
    with connection.schema_editor() as editor:
        editor.create_model(history)
    try:
        with CaptureQueriesContext(connection) as queries:
            history(**{name: f"{prefix}/500"}).save()
            history.objects.create(**{name: f"{prefix}/500"})
            history.objects.bulk_create([history(**{name: f"{prefix}/501"})])
        kinds = [query["sql"].split()[0] for query in queries]
        assert [kind for kind in kinds if kind not in TRANSACTION] == ["INSERT"] * 3
        assert history.objects.filter(**{f"{name}__number": 500}).count() == 2
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(history)
    assert not HiLoDocument.objects.exists()
    assert not GaplessCounter.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_copy_of_another_class_gives_no_ids():
    """As django-simple-history makes of integer keys, beside ids of its own."""
    key = copy.copy(Item._meta.get_field("id"))
    key.__class__ = models.BigIntegerField
    key.primary_key = key.unique = key._unique = False
    vars(key).pop("cached_col", None)
    history = model_with(0, id=key, ref=HiLoField(primary_key=True, collection="refs"))
    assert [ids.attname for ids in ids_of(history)] == ["ref"]


def test_a_field_of_others_may_have_ids_of_another_kind():
    class Tags(models.CharField):
        ids = ["red"]

    model = model_with(0, tags=Tags(max_length=5), ref=HiLoField(primary_key=True))
    assert [ids.attname for ids in ids_of(model)] == ["ref"]


def test_it_is_no_user_of_the_counter(monkeypatch, settings):
    orders, letters = history_of(Order), history_of(Letter)
    monkeypatch.setattr(apps, "get_models", lambda **options: [orders, letters])
    assert not list(counter_fields())
    assert not list(gapless_fields())
    assert len(settings.DATABASES) > 1
    assert not check_managers()


def test_fields_of_abstract_models_are_no_copies():
    assert not Car._meta.get_field("id").is_copy
    assert history_of(Car)._meta.get_field("id").is_copy


def model_with(number: int, **fields: models.Field) -> type[models.Model]:
    class Meta:
        app_label = "records"

    namespace = {"__module__": __name__, "Meta": Meta, **fields}
    return type(f"Model{number}", (models.Model,), namespace)


def test_what_is_contributed_to_its_model_again_is_no_copy():
    field = HiLoField(collection="refs")
    model = model_with(1, ref=field)
    model._meta.local_fields.remove(field)
    field.contribute_to_class(model, "ref")
    assert not model._meta.get_field("ref").is_copy


def test_a_field_of_two_models_is_no_copy():
    field = HiLoField(collection="refs")
    for number in 1, 2:
        model = model_with(number, ref=field)
        assert not model._meta.get_field("ref").is_copy
