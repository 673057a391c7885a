"""Explicit ids that are not of the field's collection."""

import copy

import pytest
from django.core.exceptions import ValidationError

from django_hilo.models import ServerPrefix
from tests.apps.records import models
from tests.apps.records.models import Claim, Letter, Order, Plain, Worker

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("error")]


@pytest.fixture(autouse=True)
def another_process(monkeypatch, new_process):
    new_process()
    for model in Order, Plain, Letter:
        monkeypatch.setattr(model._meta.pk, "_has_warned", False)


@pytest.mark.parametrize(
    "id", ["invoices/1-A", "foo bar", "orders", "orders/1-a", "orders/1-A ", "$x", 5]
)
def test_full_clean_refuses_them(id):
    with pytest.raises(ValidationError) as refused:
        Order(id=id).full_clean()
    assert refused.value.error_dict["id"][0].code == "any_id"
    with pytest.raises(ValidationError, match="is not an id of “letters”"):
        Letter(id=id).full_clean()


def test_none_is_needed(monkeypatch):
    monkeypatch.setattr(Order._meta.pk, "blank", False)
    Order().full_clean(["name"])


@pytest.mark.parametrize("id", ["orders/1-A", "Orders:NorthServer/0012-BCDE$any text"])
def test_ids_of_the_collection_pass(id):
    Order.objects.create(id=id).full_clean(["name"])
    Order(id=id.replace("1", "2")).full_clean(["name"])


@pytest.mark.parametrize("hilo", [{}, {"SHOW_NODE_TAG": False, "SEPARATOR": ":"}])
def test_ids_that_are_given_pass(hilo, settings):
    settings.HILO = hilo
    ServerPrefix.objects.create(node_tag="A", prefix="NorthServer/")
    order = Order.objects.create()
    made = [order, models.Invoice.objects.create(order=order)]
    made += [models.Sortable.objects.create()]
    made += [Letter.objects.create(), Claim.objects.create(id=f"claims{order.id[6]}")]
    for each in [*made, Claim(id="claims|")]:
        twin = copy.copy(each)
        twin._state.adding = True
        twin.full_clean(["name"], validate_unique=False)


@pytest.mark.parametrize(
    ("model", "save"),
    [
        (Order, lambda id: Order(id=id).save()),
        (Order, lambda id: Order.objects.bulk_create([Order(id=id)])),
        (Plain, lambda id: Plain.objects.bulk_create([Plain(id=id)])),
        (Letter, lambda id: Letter.objects.create(id=id)),
    ],
)
def test_saving_one_warns_once(model, save):
    with pytest.warns(
        RuntimeWarning, match="received 'foo bar', which is not an id of"
    ):
        save("foo bar")
    save("bar")
    assert model.objects.filter(id__in=["foo bar", "bar"]).count() == 2


@pytest.mark.parametrize(
    ("model", "id"),
    [(Order, "orders/8-a"), (Order, "ordérs/9-A"), (Letter, "létters/3")],
)
def test_what_a_database_takes_for_an_id_warns_too(model, id):
    with pytest.warns(RuntimeWarning, match="which is not an id of"):
        model.objects.create(id=id)


def test_a_field_that_takes_any_text(monkeypatch):
    monkeypatch.setattr(Order._meta.pk, "any_id", True)
    for each in Order(id="foo bar"), Worker(id="foo bar", name="x"):
        each.full_clean(["name"])
        each.save()


def test_rows_that_exist_are_left_alone(monkeypatch):
    monkeypatch.setattr(Order._meta.pk, "_has_warned", True)
    Order(id="foo bar", name="old").save()
    monkeypatch.setattr(Order._meta.pk, "_has_warned", False)
    order = Order.objects.get()
    order.full_clean()
    order.save()
