"""What docs/how-to/sharding.md shows of shards, run as it stands there."""

from __future__ import annotations

import doctest
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import models, transaction
from django.shortcuts import get_object_or_404

from django_hilo.checks.shards import are_shards
from django_hilo.sharding import ShardRouter, bucket_of, shard_of
from django_hilo.sharding.shards import shards as all_shards
from tests.apps.records.models import Invoice, Order, Product
from tests.apps.spread.models import Client, Deal
from tests.conftest import PROJECT
from tests.support.databases import CHOSEN

TEXT = (PROJECT / "docs/how-to/sharding.md").read_text()
on_two_servers = [
    pytest.mark.skipif(CHOSEN == "sqlite", reason="no counters of others on SQLite"),
    pytest.mark.django_db(databases=["default", "other"]),
]


def block(start: str) -> str:
    """Return the code of the page that starts so."""
    (found,) = re.findall(
        rf"```(?:python|console)\n({re.escape(start)}.*?)```", TEXT, re.DOTALL
    )
    return found


def where(instance: models.Model) -> list[str]:
    rows = type(instance)._base_manager.filter(pk=instance.pk)
    return [alias for alias in ("default", "other") if rows.using(alias).exists()]


@pytest.fixture
def shards(settings):
    read = {}
    exec(block("# settings.py"), read)
    settings.HILO = read["HILO"]
    settings.DATABASE_ROUTERS = read["DATABASE_ROUTERS"]


def test_buckets():
    (code,) = re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL)
    parsed = doctest.DocTestParser().get_doctest(code, {}, "sharding.md", None, 0)
    assert doctest.DocTestRunner().run(parsed) == (0, 3)
    assert bucket_of("orders/33-A") == 522125


def test_each_row_of_the_table_can_be_set():
    rows = re.findall(r"^\| `(\{.*?\})` \|", TEXT, re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        assert are_shards(eval(row))


@pytest.mark.usefixtures("shards")
class TestOnShards:
    pytestmark = on_two_servers

    def test_what_works(self):
        found = {
            "Order": Order,
            "Invoice": Invoice,
            "id": None,
            "transaction": transaction,
            "shard_of": shard_of,
            "get_object_or_404": get_object_or_404,
        }
        first, second = block("order = Order.objects.create()").split("\n\n")
        exec(first, found)
        made = found["order"]
        assert where(made) == [shard_of(made.id)]
        invoices = Invoice.objects.shard(made)
        assert invoices.count() == 2
        assert sum(Order.objects.using(alias).count() for alias in where(made)) >= 1
        found["id"] = made.id
        Invoice.objects.shard(made).delete()
        exec(second, found)
        assert where(made) == []

    def test_a_relation_without_a_constraint(self):
        while (client := Client.objects.create())._state.db != "other":
            pass
        code = block("order = Order.objects.create(customer_id")
        found = {"Order": Deal, "Customer": Client, "customer": client}
        code = code.replace("customer_id", "client_id")
        exec(code.replace("order.customer", "order.client"), found)
        assert found["customer"] == client
        assert found["customer"] is not client
        assert found["order"].client_id == client.id

    def test_copies(self, settings):
        found = {}
        exec(
            block("# shop/routers.py").replace("shop.Product", "records.Product"), found
        )
        router = found["ShopRouter"]
        assert issubclass(router, ShardRouter)
        settings.DATABASE_ROUTERS = [router()]
        product = Product()
        exec(block("from django_hilo.sharding.shards import"), {"product": product})
        assert where(product) == ["default", "other"]
        assert all_shards().aliases == ("default", "other")

    def test_how_full_buckets_are(self):
        for number in range(1, 201):
            order = Order.objects.create(id=f"orders/{number}-A")
            count = number % 10 + (100 if number == 4 else 0)
            Invoice.objects.bulk_create([Invoice(order=order) for _ in range(count)])
        out = StringIO()
        call_command("hilo_show", "--buckets", stdout=out, no_color=True)
        shown = block("$ python manage.py hilo_show --buckets").split("\n", 1)[1]
        shown = shown.replace("shop.Invoice", "records.Invoice")
        assert shown in out.getvalue()
