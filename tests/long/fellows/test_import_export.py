import re

import pytest
import tablib
from django.core.files.uploadedfile import SimpleUploadedFile
from import_export import resources
from import_export.instance_loaders import CachedInstanceLoader

from django_hilo._allocation import memory
from django_hilo.identifiers import parse
from tests.long.fellows.market.models import Invoice, Order, Ticket

pytestmark = pytest.mark.django_db


OrderResource = resources.modelresource_factory(Order)
InvoiceResource = resources.modelresource_factory(Invoice)
TicketResource = resources.modelresource_factory(Ticket)


class BulkOrderResource(resources.ModelResource):
    class Meta:
        model = Order
        use_bulk = True
        batch_size = 10
        instance_loader_class = CachedInstanceLoader


class BulkTicketResource(resources.ModelResource):
    class Meta:
        model = Ticket
        use_bulk = True


def dataset(text: str) -> tablib.Dataset:
    return tablib.Dataset().load(text, format="csv")


def load(resource, text, **options):
    result = resource().import_data(dataset(text), raise_errors=True, **options)
    assert not result.has_errors()
    return result.totals


def ids(model=Order):
    return set(model.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("resource", [OrderResource, BulkOrderResource])
def test_a_round_trip_keeps_the_ids(resource):
    Order.objects.bulk_create([Order(name=f"{n}") for n in range(5)])
    before = ids()
    text = resource().export().csv
    assert "orders/3-A,2" in text
    Order.objects.all().delete()
    totals = load(resource, text)
    assert totals["new"] == 5
    assert ids() == before
    assert Order.objects.create().pk not in before
    totals = load(resource, text.replace("orders/3-A,2", "orders/3-A,changed"))
    assert totals["new"] == 0
    assert Order.objects.get(pk="orders/3-A").name == "changed"


@pytest.mark.parametrize("resource", [OrderResource, BulkOrderResource])
def test_rows_without_an_id_get_one(resource):
    totals = load(resource, "id,name\n,first\n,second\norders/7-A,third\n")
    assert totals["new"] == 3
    names = dict(Order.objects.values_list("name", "pk"))
    assert names["third"] == "orders/7-A"
    assert len({parse(pk).number for pk in names.values()}) == 3


@pytest.mark.parametrize("resource", [OrderResource, BulkOrderResource])
@pytest.mark.django_db(transaction=True)
def test_explicit_ids_raise_the_floor(resource):
    load(resource, "id,name\norders/500-A,high\norders/40-A,low\n")
    assert parse(Order.objects.create().pk).number > 500
    memory.after_fork_in_child()  # as another process
    assert parse(Order.objects.create().pk).number > 500


@pytest.mark.django_db(transaction=True)
def test_a_dry_run_stores_nothing():
    load(OrderResource, "id,name\n,first\norders/500-A,second\n", dry_run=True)
    assert not ids()
    load(OrderResource, "id,name\n,first\norders/500-A,second\n")
    assert len(ids()) == 2


def test_relations_and_anchors():
    orders = [Order.objects.create() for _ in range(2)]
    Invoice.objects.create(order=orders[0], total=5)
    text = InvoiceResource().export().csv
    assert "invoices/1-A$orders/1-A,orders/1-A,5" in text
    Invoice.objects.all().delete()
    load(InvoiceResource, text + ",orders/2-A,6\n")
    kept, given = Invoice.objects.order_by("total")
    assert kept.pk == "invoices/1-A$orders/1-A"
    assert given.order == orders[1]
    assert parse(given.pk).anchor == "orders/2-A"
    assert parse(given.pk).number > 1


@pytest.mark.parametrize("resource", [TicketResource, BulkTicketResource])
def test_integer_keys(resource):
    load(resource, "id,name\n,first\n9000,second\n,third\n")
    keys = dict(Ticket.objects.values_list("name", "pk"))
    assert keys["second"] == 9000
    assert len(set(keys.values())) == 3
    assert Ticket.objects.create().pk not in keys.values()
    Ticket.objects.create(pk=9500)
    assert load(resource, resource().export().csv)["new"] == 0


def test_the_pages_of_the_admin(pages):
    Order.objects.create(name="old")
    start = pages.list(Order) + "import/"
    upload = SimpleUploadedFile("orders.csv", b"id,name\n,new\norders/1-A,renamed\n")
    formats = re.findall(r'<option value="(\d+)"[^>]*>\s*csv', pages.get(start))
    answer = pages.client.post(start, {"import_file": upload, "format": formats[0]})
    assert answer.status_code == 200
    hidden = answer.context["confirm_form"].initial
    assert Order.objects.get().name == "old"  # a preview
    pages.post(pages.list(Order) + "process_import/", hidden)
    assert Order.objects.count() == 2
    assert Order.objects.get(pk="orders/1-A").name == "renamed"
    start = pages.list(Order) + "export/"
    columns = re.findall(r'name="(orderresource_\w+)"', pages.get(start))
    assert columns
    chosen = {"format": formats[0], "resource": "", **dict.fromkeys(columns, "on")}
    exported = pages.client.post(start, chosen)
    assert b"orders/1-A,renamed" in exported.content
