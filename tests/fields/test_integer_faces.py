"""HiLoBigAutoField in forms, the admin, DRF, REST and the commands."""

import pytest
from django.contrib.auth.models import User
from django.forms import modelform_factory
from django.test import Client

from tests.apps.numbers.models import Item
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
on_postgres = pytest.mark.skipif(CHOSEN != "postgres", reason="It has sequences.")
elsewhere = pytest.mark.skipif(CHOSEN == "postgres", reason="It has sequences.")

RANGES = "/hilo/collections/numbers_item/ranges/"
NEXT = "/hilo/collections/numbers_item/next-id/"


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def post(client: Client, url: str, data: dict[str, object]):
    return client.post(url, data, content_type="application/json")


class TestForms:
    def test_no_form_asks_for_it_or_burns_one(self):
        before = Item.objects.create().pk
        form_class = modelform_factory(Item, fields="__all__")
        assert list(form_class.base_fields) == ["name"]
        form_class()
        form_class({"name": "x" * 51}).is_valid()
        Item(name="x").full_clean()
        assert form_class({"name": "y"}).save().pk == before + 1


class TestREST:
    def test_next_ids(self, client):
        first = Item.objects.create().pk
        answer = post(client, NEXT, {"count": 2})
        assert answer.status_code == 201
        assert answer.json() == {
            "collection": "numbers_item",
            "numbers": [first + 1, first + 2],
            "ids": [first + 1, first + 2],
        }

    @on_postgres
    def test_no_ranges_of_a_sequence(self, client):
        answer = post(client, RANGES, {"size": 10})
        assert answer.status_code == 409
        assert "next-id" in answer.content.decode()

    @elsewhere
    @pytest.mark.parametrize("explicit", [0, 5])
    def test_lent_ranges_start_over_the_rows(self, client, new_process, explicit):
        high = Item.objects.create().pk + 500
        execute("INSERT INTO numbers_item (id, name) VALUES (%s, '')", high)
        new_process()
        if explicit:
            Item.objects.create(pk=explicit)
        answer = post(client, RANGES, {"size": 10})
        assert answer.status_code == 201
        lent = answer.json()
        assert (lent["low"], lent["high"]) == (high + 1, high + 10)
        made = {Item.objects.create().pk for _ in range(40)}
        assert not made & set(range(lent["low"], lent["high"] + 1))
        given = {"high": lent["high"], "last": lent["low"], "ticket": lent["ticket"]}
        returned = post(client, f"{RANGES}return/", given)
        assert returned.status_code == 409  # others have drawn since

    @elsewhere
    def test_a_lent_range_goes_back(self, client, new_process):
        lent = post(client, RANGES, {"size": 10}).json()
        given = {"high": lent["high"], "last": lent["low"], "ticket": lent["ticket"]}
        answer = post(client, f"{RANGES}return/", given)
        assert answer.json() == {"returned": True, "max": lent["low"]}
        Item.objects.create(pk=lent["low"])
        assert Item.objects.create().pk == lent["low"] + 1
