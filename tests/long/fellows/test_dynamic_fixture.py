import pytest
from ddf import G, N

from tests.long.fellows.market.models import Invoice, Order, Ticket

pytestmark = pytest.mark.django_db


def test_keys_are_ours():
    """DDF_IGNORE_FIELDS is set; without it, orders have keys such as "1"."""
    assert [G(Order).pk, Order.objects.create().pk] == ["orders/1-A", "orders/2-A"]
    assert G(Invoice).pk == "invoices/1-A$orders/3-A"
    assert N(Order).pk is None
    tickets = [G(Ticket), Ticket.objects.create(), G(Ticket)]
    assert len({ticket.pk for ticket in tickets}) == 3
