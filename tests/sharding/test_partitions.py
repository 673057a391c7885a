"""The migration of docs/how-to/sharding.md, as it stands there, on PostgreSQL."""

import importlib
import re
import sys
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import CaptureQueriesContext

from django_hilo.sharding import bucket_of
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = [
    pytest.mark.skipif(CHOSEN != "postgres", reason="partitions of PostgreSQL"),
    pytest.mark.django_db(transaction=True),
]
DOCS = (PROJECT / "docs/how-to/sharding.md").read_text()
KEY, ANCHOR_KEY = 'KEY = "id"\n', 'KEY = "id anchor_ops"\n'
# A model that no other refers to.
EVENT = """

from django_hilo.fields import BucketField


class Event(models.Model):
    pk = models.CompositePrimaryKey("id", "bucket")
    id = HiLoField()
    name = models.CharField(max_length=50, default="")
    bucket = BucketField()
    objects = HiLoManager()
"""
BUCKETS = {'["Order", "Invoice"]': '["Event"]', KEY: 'KEY = "bucket"\n'}


def migrate(name: str | None) -> None:
    MigrationExecutor(connection).migrate([("shop", name)])


@pytest.fixture
def changed() -> dict[str, str]:
    """What is changed in the migration of the text."""
    return {}


@pytest.fixture
def shop(transactional_db, tmp_path, monkeypatch, settings, changed):
    """An app of the files that the page shows, with the tables of 0001_initial."""
    for path, code in re.findall(r"```python\n# (shop/\S+)\n(.*?)```", DOCS, re.DOTALL):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    (tmp_path / "shop/__init__.py").touch()
    migrations = tmp_path / "shop/migrations"
    (migrations / "__init__.py").touch()
    later = (migrations / "0002_partition.py").rename(tmp_path / "later.py")
    with (tmp_path / "shop/models.py").open("a") as models:
        models.write(EVENT)
    code = later.read_text()
    for old, new in changed.items():
        assert old in code
        code = code.replace(old, new)
    later.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "shop"]
    call_command("makemigrations", "shop", verbosity=0)
    later.rename(migrations / "0002_partition.py")
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
    migrate("0002_partition")
    return shop


@pytest.fixture
def anchors(transactional_db):
    """The operator class of the text."""
    (sql,) = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)
    execute(sql)
    yield
    execute("DROP OPERATOR FAMILY anchor_ops USING hash; DROP FUNCTION anchor_hash")


def partitions_of(table: str) -> dict[str, str]:
    return dict(
        execute(
            f"SELECT inhrelid::regclass::text, pg_get_expr(relpartbound, oid) FROM "
            f"pg_inherits JOIN pg_class ON oid = inhrelid "
            f"WHERE inhparent = '{table}'::regclass"
        )
    )


def structure() -> dict[str, Any]:
    """Return the constraints and indexes of both tables, as Django sees them."""
    found = {}
    with connection.cursor() as cursor:
        for table in ("shop_order", "shop_invoice"):
            found |= connection.introspection.get_constraints(cursor, table)
    # PostgreSQL has one more foreign key for each partition that it refers to, and from
    # 18 on a name for each NOT NULL, which Django never drops by it.
    return {
        name: each
        for name, each in found.items()
        if not (each["foreign_key"] and each["foreign_key"][0] != "shop_order")
        and "_not_null" not in name
    }


def place_of(instance) -> int:
    """Return the number of the partition that has the row."""
    table = instance._meta.db_table
    ((name,),) = execute(
        f"SELECT tableoid::regclass::text FROM {table} WHERE id = '{instance.id}'"
    )
    return int(name.removeprefix(f"{table}_"))


def test_tables_are_partitioned_and_keep_all_that_they_have(shop):
    orders = shop.Order.objects.bulk_create([shop.Order(name="x") for _ in range(50)])
    invoices = [shop.Invoice(order=order) for order in orders]
    shop.Invoice.objects.bulk_create(invoices)
    assert partitions_of("shop_order") == {}
    before = structure()
    migrate("0002_partition")
    for table in ("shop_order", "shop_invoice"):
        assert partitions_of(table) == {
            f"{table}_{n}": f"FOR VALUES WITH (modulus 8, remainder {n})"
            for n in range(8)
        }
        (key,) = execute(
            f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE "
            f"conrelid = '{table}'::regclass AND contype = 'p'"
        )
        assert key == ("PRIMARY KEY (id)",)
    # Names too: later migrations drop some of these by name.
    assert structure() == before
    assert set(shop.Order.objects.filter(name="x")) == set(orders)
    assert set(shop.Invoice.objects.all()) == set(invoices)
    assert len(set(map(place_of, orders))) == 8
    migrate("0001_initial")
    assert partitions_of("shop_order") == {}
    assert structure() == before
    assert set(shop.Invoice.objects.all()) == set(invoices)
    migrate("0002_partition")
    assert set(shop.Order.objects.all()) == set(orders)


CHANGES = {
    "0003_whole": "migrations.RunPython(rebuild, partition)",
    "0004_longer": 'migrations.AlterField("order", "id", HiLoField(primary_key=True, '
    "max_length=100))",
    "0005_partition": "migrations.RunPython(partition, rebuild)",
}


def test_a_key_is_altered_between_two_rebuilds(partitioned, tmp_path):
    order = partitioned.Order.objects.create()
    invoice = partitioned.Invoice.objects.create(order=order)
    before, previous = structure(), "0002_partition"
    for name, operation in CHANGES.items():
        (tmp_path / f"shop/migrations/{name}.py").write_text(
            "from importlib import import_module\n"
            "from django.db import migrations\n"
            "from django_hilo.fields import HiLoField\n"
            'second = import_module("shop.migrations.0002_partition")\n'
            "rebuild, partition = second.rebuild, second.partition\n"
            "class Migration(migrations.Migration):\n"
            f"    dependencies = [('shop', '{previous}')]\n"
            f"    operations = [{operation}]\n"
        )
        previous = name
    importlib.invalidate_caches()
    migrate("0005_partition")
    assert structure() == before
    assert len(partitions_of("shop_order")) == 8
    lengths = (
        "SELECT table_name, character_maximum_length FROM information_schema.columns "
        "WHERE (table_name, column_name) IN "
        "(('shop_order', 'id'), ('shop_invoice', 'order_id'))"
    )
    assert dict(execute(lengths)) == {"shop_order": 100, "shop_invoice": 100}
    assert partitioned.Invoice.objects.get().order == order == invoice.order
    migrate("0002_partition")
    assert dict(execute(lengths)) == {"shop_order": 64, "shop_invoice": 64}


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
    assert Invoice.objects.select_related("order").get().order.name == "new"
    assert Order.objects.filter(invoice__id=invoice.id).get() == order
    Order.objects.bulk_create([Order(id=order.id)], ignore_conflicts=True)
    Order.objects.bulk_create(
        [Order(id=order.id, name="newer")],
        update_conflicts=True,
        update_fields=["name"],
        unique_fields=["id"],
    )
    order.refresh_from_db()
    assert order.name == "newer"
    assert order.delete()[1] == {"shop.Invoice": 1, "shop.Order": 1}
    assert Order.objects.count() == 19


ANCHORED = pytest.mark.parametrize("changed", [{}, {KEY: ANCHOR_KEY}])


@ANCHORED
def test_the_database_checks_keys(changed, anchors, partitioned):
    Order, Invoice = partitioned.Order, partitioned.Invoice
    order = Order.objects.create()
    invoice = Invoice.objects.create(order=order)
    with pytest.raises(IntegrityError):
        Order.objects.create(id=order.id)
    with pytest.raises(IntegrityError):
        Invoice.objects.create(id=invoice.id, order=Order.objects.create())
    with pytest.raises(IntegrityError):
        Invoice.objects.create(order_id="orders/77-A")
    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk)._raw_delete("default")
    with transaction.atomic():
        later = Invoice.objects.create(order_id="orders/88-A")
        Order.objects.create(id="orders/88-A")
    assert set(Invoice.objects.all()) == {invoice, later}


def scanned(rows) -> int:
    return len(set(re.findall(r" on (shop_\w+_\d)\b", rows.explain())))


@ANCHORED
def test_a_look_up_searches_one_partition(changed, anchors, partitioned):
    order = partitioned.Order.objects.create()
    invoice = partitioned.Invoice.objects.create(order=order)
    for each in (order, invoice):
        rows = type(each).objects.filter(id=each.id)
        assert rows.get() == each
        assert scanned(rows) == 1
        assert "Index" in rows.explain() or "Bitmap" in rows.explain()
    assert scanned(partitioned.Order.objects.filter(name="x")) == 8


@pytest.mark.parametrize("changed", [{KEY: ANCHOR_KEY}])
def test_rows_with_one_anchor_are_together(anchors, partitioned):
    Order, Invoice = partitioned.Order, partitioned.Invoice
    orders = Order.objects.bulk_create([Order() for _ in range(50)])
    for order in orders:
        invoice = order.invoice_set.create()
        # An invoice of the invoice, as it were: the last anchor counts.
        nested = Invoice.objects.create(id=f"x$invoices/7-A${order.id}", order=order)
        assert place_of(order) == place_of(invoice) == place_of(nested)
    assert len(set(map(place_of, orders))) == 8


@pytest.mark.parametrize(
    "changed", [{'["Order", "Invoice"]': '["Invoice"]', KEY: 'KEY = "order_id"\n'}]
)
def test_a_relation_outside_the_primary_key_cannot_partition(shop):
    with pytest.raises(DatabaseError, match="must include all partitioning columns"):
        migrate("0002_partition")
    assert partitions_of("shop_invoice") == {}


@pytest.mark.parametrize("changed", [BUCKETS])
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
