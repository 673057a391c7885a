from __future__ import annotations

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote, unquote
from django.core.management import call_command
from django.http import Http404
from simple_history.admin import SimpleHistoryAdmin
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from django_hilo._allocation import pool
from django_hilo._allocation.target import counter_fields
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
    pool.after_fork_in_child()  # as another process, which knows no range
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


def test_integer_keys():
    meter = Meter.objects.create(value=1)
    meter.value = 2
    meter.save()
    assert [row.id for row in meter.history.all()] == [meter.pk] * 2
    meter.history.earliest().instance.save()
    assert Meter.objects.get().value == 1


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


def test_populate_history():
    Contract.objects.bulk_create([Contract() for _ in range(3)])
    call_command("populate_history", "--auto", verbosity=0)
    assert sorted(row.id for row in History.objects.all()) == [
        "contracts/1-A",
        "contracts/2-A",
        "contracts/3-A",
    ]


@pytest.fixture
def contract():
    return Contract.objects.create(name="old")


def test_the_pages_of_the_admin(pages, contract):
    check_pages(pages, contract, {"name": "old"}, {"name": "new"})


def test_the_pages_of_an_anchored_id(pages, contract):
    clause = Clause.objects.create(contract=contract, text="old")
    old, new = ({"contract": contract.pk, "text": text} for text in ("old", "new"))
    check_pages(pages, clause, old, new)


def test_the_pages_of_an_integer_key(pages):
    check_pages(pages, Meter.objects.create(value=1), {"value": 1}, {"value": 2})


def check_pages(pages, obj, old, new):
    """Change an object on its page, and back on that of its first version."""
    pages.post(pages.of(obj), new)
    url = pages.of(obj, "history")
    rows = list(obj.history.order_by("history_id"))
    page = pages.get(url)
    links = [f"{unquote(url)}{row.pk}/" for row in rows]
    for link in links:
        assert f'href="{link}"' in page
        pages.get(link)

    pages.post(links[0], old)

    again = type(obj).objects.get()
    assert again.pk == obj.pk
    for name, value in old.items():
        assert getattr(again, again._meta.get_field(name).attname) == value


def test_as_it_comes_it_forgets_to_quote_and_to_unquote(contract, admin_user, rf):
    """Theirs: the reason for the lines of HistoryAdmin."""
    pages = SimpleHistoryAdmin(Contract, AdminSite())
    urls = pages.get_urls()
    (change,) = [url for url in urls if url.name == "market_contract_simple_history"]
    assert change.pattern.match(f"{quote(contract.pk)}/history/1/")
    assert not change.pattern.match(f"{contract.pk}/history/1/")
    request = rf.get("/")
    request.user = admin_user
    with pytest.raises(Http404):
        version = str(contract.history.get().pk)
        pages.history_form_view(request, quote(contract.pk), version)


def test_revert_url(contract):
    version = contract.history.get()
    url = f"/admin/market/contract/{contract.pk}/history/{version.pk}/"
    assert version.revert_url() == url
