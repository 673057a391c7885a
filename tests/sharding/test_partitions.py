"""The migration of docs/how-to/sharding.md, as it stands there, on PostgreSQL."""

import importlib
import re
import sys

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import CaptureQueriesContext

from django_hilo.sharding import bucket_of
from tests.conftest import PROJECT
from tests.support.databases import CHOSEN

pytestmark = [
    pytest.mark.skipif(CHOSEN != "postgres", reason="partitions of PostgreSQL"),
    pytest.mark.django_db(transaction=True),
]
DOCS = (PROJECT / "docs/how-to/sharding.md").read_text()
# A model that no other refers to, as the text has it.
EVENT = """

class Event(models.Model):
    pk = models.CompositePrimaryKey("id", "bucket")
    id = HiLoField()
    name = models.CharField(max_length=50, default="")
    bucket = BucketField()
    objects = HiLoManager()
"""


def migrate(name: str | None) -> None:
    MigrationExecutor(connection).migrate([("shop", name)])


@pytest.fixture
def shop(transactional_db, tmp_path, monkeypatch, settings):
    """An app of the files that the page shows, with the tables of 0001_initial."""
    for path, code in re.findall(r"```python\n# (shop/\S+)\n(.*?)```", DOCS, re.DOTALL):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    (tmp_path / "shop/__init__.py").touch()
    migrations = tmp_path / "shop/migrations"
    (migrations / "__init__.py").touch()
    later = (migrations / "0002_partition_by_bucket.py").rename(tmp_path / "later.py")
    with (tmp_path / "shop/models.py").open("a") as models:
        models.write(EVENT)
    later.write_text(
        later.read_text().replace(
            "    operations = [\n",
            "    operations = [\n        migrations.RunSQL(partitioned('shop_event'), "
            "rebuild('shop_event', '', 'id, bucket')),\n",
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "shop"]
    call_command("makemigrations", "shop", verbosity=0)
    later.rename(migrations / "0002_partition_by_bucket.py")
    importlib.invalidate_caches()
    try:
        migrate("0001_initial")
        yield importlib.import_module("shop.models")
    finally:
        migrate(None)
        for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
            del sys.modules[name]
        apps.all_models.pop("shop")
        apps.clear_cache()


@pytest.fixture
def partitioned(shop):
    migrate("0002_partition_by_bucket")
    return shop


def ask(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def partitions_of(table: str) -> dict[str, str]:
    return dict(
        ask(
            f"SELECT inhrelid::regclass::text, pg_get_expr(relpartbound, oid) FROM "
            f"pg_inherits JOIN pg_class ON oid = inhrelid "
            f"WHERE inhparent = '{table}'::regclass"
        )
    )


def test_tables_are_partitioned_and_keep_their_rows(shop):
    orders = shop.Order.objects.bulk_create([shop.Order(name="x") for _ in range(50)])
    invoices = [shop.Invoice(order=order) for order in orders]
    shop.Invoice.objects.bulk_create(invoices)
    assert partitions_of("shop_order") == {}
    migrate("0002_partition_by_bucket")
    for table in ("shop_order", "shop_invoice", "shop_event"):
        found = partitions_of(table)
        assert sorted(found) == [f"{table}_{n}" for n in range(8)]
        assert found[f"{table}_0"] == "FOR VALUES FROM (0) TO (131072)"
        assert found[f"{table}_7"] == "FOR VALUES FROM (917504) TO (1048576)"
        (key,) = ask(
            f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE "
            f"conrelid = '{table}'::regclass AND contype = 'p'"
        )
        assert key == ("PRIMARY KEY (id, bucket)",)
    assert set(shop.Order.objects.all()) == set(orders)
    assert set(shop.Invoice.objects.all()) == set(invoices)
    assert shop.Order.objects.filter(name="x").count() == 50
    found = ask(
        "SELECT shop_order.tableoid::regclass::text, "
        "shop_invoice.tableoid::regclass::text, bucket FROM shop_order "
        "JOIN shop_invoice USING (bucket)"
    )
    assert len(found) == 50
    for order_in, invoice_in, bucket in found:
        number = bucket * 8 // 1_048_576
        assert order_in == f"shop_order_{number}"
        assert invoice_in == f"shop_invoice_{number}"
    assert len({order_in for order_in, _, _ in found}) == 8


def test_back_again(partitioned):
    order = partitioned.Order.objects.create()
    invoice = partitioned.Invoice.objects.create(order=order)
    migrate("0001_initial")
    assert partitions_of("shop_order") == {}
    assert partitioned.Invoice.objects.get().order == order
    with pytest.raises(IntegrityError):
        partitioned.Invoice.objects.create(id=invoice.id, order=order)
    migrate("0002_partition_by_bucket")
    assert partitioned.Invoice.objects.get() == invoice


def test_django_finds_nothing_to_do(partitioned):
    call_command("makemigrations", "shop", check=True, dry_run=True, verbosity=0)
    call_command("check", "shop", "--fail-level=ERROR")


def test_saves_and_queries(partitioned):
    Order, Invoice = partitioned.Order, partitioned.Invoice
    orders = Order.objects.bulk_create([Order() for _ in range(20)])
    order = orders[0]
    order.name = "new"
    order.save()
    order.refresh_from_db()
    assert order.name == "new"
    assert Order.objects.get_or_create(id=order.id) == (order, False)
    invoice = order.invoice_set.create()
    assert invoice.bucket == order.bucket == bucket_of(order.id)
    assert Invoice.objects.select_related("order").get().order.name == "new"
    assert Order.objects.filter(invoice__id=invoice.id).get() == order
    Order.objects.bulk_create([Order(id=order.id)], ignore_conflicts=True)
    Order.objects.bulk_create(
        [Order(id=order.id, name="newer")],
        update_conflicts=True,
        update_fields=["name"],
        unique_fields=["id", "bucket"],
    )
    order.refresh_from_db()
    assert order.name == "newer"
    assert order.delete()[1] == {"shop.Invoice": 1, "shop.Order": 1}
    assert Order.objects.count() == 19


def test_what_the_database_still_checks(partitioned):
    Order, Invoice = partitioned.Order, partitioned.Invoice
    order = Order.objects.create()
    with pytest.raises(IntegrityError):
        Order.objects.create(id=order.id)
    with pytest.raises(IntegrityError):
        Invoice.objects.create(order_id="orders/77-A")
    with pytest.raises(IntegrityError), transaction.atomic():
        Invoice.objects.create(order=order)
        Order.objects.filter(pk=order.pk)._raw_delete("default")
    with transaction.atomic():
        invoice = Invoice(order_id="orders/88-A")
        invoice.save()
        Order.objects.create(id="orders/88-A")
    assert Invoice.objects.get() == invoice


def test_what_it_no_longer_checks(partitioned):
    order = partitioned.Order.objects.create()
    wrong = (order.bucket + 1) % 1_048_576
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO shop_order (id, name, bucket) VALUES (%s, '', %s)",
            [order.id, wrong],
        )
    assert partitioned.Order.objects.filter(id=order.id).count() == 2
    assert partitioned.Order.objects.filter(id=order.id, bucket=order.bucket).get()
    assert partitioned.Order.objects.filter(bucket=wrong).delete()[0]


def scanned(rows) -> int:
    return len(set(re.findall(r" on (shop_\w+_\d)\b", rows.explain())))


def test_the_bucket_prunes(partitioned):
    order = partitioned.Order.objects.create()
    rows = partitioned.Order.objects.filter(id=order.id)
    assert scanned(rows) == 8
    assert scanned(rows.filter(bucket=bucket_of(order.id))) == 1
    assert "Index" in rows.explain() or "Bitmap" in rows.explain()


def test_a_key_of_id_and_bucket(partitioned):
    Event = partitioned.Event
    first = Event.objects.create(name="x")
    first.name = "y"
    with CaptureQueriesContext(connection) as queries:
        first.save()
    (update,) = queries.captured_queries
    assert re.search(r'SET "name" = \S+ WHERE .*"id".*"bucket"', update["sql"])
    assert Event.objects.get(name="y").pk == (first.id, bucket_of(first.id))
    assert scanned(Event.objects.filter(pk=first.pk)) == 1
    events = Event.objects.bulk_create([Event() for _ in range(20)])
    assert [event.bucket for event in events] == [bucket_of(e.id) for e in events]
    first.refresh_from_db()
    first.delete()
    assert Event.objects.count() == 20
