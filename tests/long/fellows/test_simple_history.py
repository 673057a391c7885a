import pytest
from django.contrib.admin.utils import unquote
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from django_hilo._allocation import memory
from django_hilo._allocation.registry import counter_fields
from django_hilo.fields import HiLoField
from django_hilo.models import HiLoDocument
from tests.long.fellows.market.models import Clause, Contract, Meter

pytestmark = pytest.mark.django_db

History = Contract.history.model


def test_a_row_for_each_change(statements):
    contract = Contract.objects.create(name="first")
    contract.name = "second"
    assert statements(contract.save) == ["UPDATE", "INSERT"]
    assert statements(Contract.objects.create) == ["INSERT", "INSERT"]
    key = contract.pk
    contract.delete()
    rows = History.objects.filter(id=key).order_by("history_id")
    assert key == "contracts/1-A"
    assert list(rows.values_list("history_type", "name")) == [
        ("+", "first"),
        ("~", "second"),
        ("-", "second"),
    ]
    assert not isinstance(History._meta.pk, HiLoField)
    assert History.objects.filter(id__number=1).count() == 3


@pytest.mark.django_db(transaction=True)
def test_history_takes_no_number_and_writes_no_counter():
    contracts = [Contract.objects.create() for _ in range(3)]
    before = HiLoDocument.objects.values().get()
    memory.after_fork_in_child()  # as another process, which knows no range
    for contract in contracts:
        contract.name = "changed"
        contract.save()
        contract.delete()
    assert HiLoDocument.objects.values().get() == before
    assert History not in {field.model for field in counter_fields()}


def test_reverting():
    contract = Contract.objects.create(name="good")
    contract.name = "bad"
    contract.save()
    contract.history.earliest().instance.save()
    contract.refresh_from_db()
    assert contract.name == "good"
    assert contract.history.count() == 3
    key, created_at = contract.pk, contract.history.earliest().history_date
    contract.delete()
    History.objects.filter(id=key, history_type="-").get().instance.save()
    assert Contract.objects.get(pk=key).name == "good"
    assert Contract.objects.get().history.as_of(created_at).name == "good"
    assert Contract.objects.create().pk != key


def test_keys_with_anchors_and_history_with_keys_of_ours():
    contract = Contract.objects.create()
    clause = Clause.objects.create(contract=contract, text="old")
    clause.text = "new"
    clause.save()
    first, second = clause.history.order_by("history_id")
    assert first.id == second.id == clause.pk == "clauses/1-A$contracts/1-A"
    assert second.history_id == first.history_id + 1
    assert second.contract == contract
    assert second.diff_against(first).changed_fields == ["text"]


@pytest.mark.parametrize("model", [Contract, Meter])
def test_in_bulk(model):
    created = bulk_create_with_history([model() for _ in range(5)], model)
    assert len({each.pk for each in created}) == 5
    assert model.history.count() == 5
    column = model._meta.fields[1].attname
    for each in created:
        setattr(each, column, 7)
    bulk_update_with_history(created, model, [column])
    assert {row.id for row in model.history.filter(history_type="~")} == {
        each.pk for each in created
    }


@pytest.fixture
def contract():
    return Contract.objects.create(name="old")


def test_the_pages_of_the_admin(pages, contract):
    """Of a key with an anchor, which has all that a URL must quote."""
    clause = Clause.objects.create(contract=contract, text="old")
    pages.post(pages.of(clause), {"contract": contract.pk, "text": "new"})
    url = pages.of(clause, "history")
    rows = list(clause.history.order_by("history_id"))
    page = pages.get(url)
    links = [f"{unquote(url)}{row.pk}/" for row in rows]
    for link in links:
        assert f'href="{link}"' in page
        pages.get(link)
    pages.post(links[0], {"contract": contract.pk, "text": "old"})
    again = Clause.objects.get()
    assert (again.pk, again.text) == (clause.pk, "old")
