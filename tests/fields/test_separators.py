"""Rows with the separator that settings had before; see docs/how-to/run-books.md."""

import pytest

from django_hilo.generator import next_id
from django_hilo.models import HiLoDocument
from django_hilo.sharding import bucket_of
from tests.apps.records.models import Claim, Invoice, Letter, Order
from tests.support.commands import told_by

pytestmark = pytest.mark.django_db(transaction=True)

OLD = "orders/9-A"


@pytest.fixture
def changed(settings, new_process):
    """Rows of before, and a process that starts with another separator."""
    Order.objects.bulk_create([Order(id="orders/1-A"), Order(id=OLD)])
    settings.HILO = {**settings.HILO, "SEPARATOR": ":"}
    new_process()


@pytest.mark.usefixtures("changed")
class TestLivingWithBoth:
    def test_the_numbers_go_on(self):
        assert next_id(Order) == "orders:10-A"

    def test_anchors(self):
        old = Order.objects.get(pk=OLD)
        invoice = Invoice.objects.create(order=old)
        assert invoice.pk == "invoices:1-A$orders/9-A"
        assert Invoice.objects.anchored_to(old).get() == invoice
        assert Invoice.objects.get(id__anchor=OLD) == invoice
        assert bucket_of(invoice.pk) == bucket_of(OLD)

    def test_raise_max_counts_them(self, new_process):
        HiLoDocument.objects.all().delete()
        new_process()
        assert "was raised: 0 to 9." in told_by("hilo_raise_max", "orders")
        assert Order.objects.create().pk == "orders:10-A"

    def test_floors(self, new_process):
        Order.objects.create(id="orders/500-A")
        new_process()
        assert Order.objects.create().pk == "orders:501-A"

    def test_requests_for_ids(self):
        """The old one is a text like any other, and is stored as it is."""
        assert Claim.objects.create(id="claims/").pk == "claims/"
        assert Claim.objects.create(id="claims:").pk == "claims:" + "1".zfill(19) + "-A"
        assert Claim.objects.create(id="claims|").pk == "claims:1"

    def test_gapless_numbers_go_on(self):
        Letter.objects.create(id="letters/7")
        assert Letter.objects.create().pk == "letters:8"
