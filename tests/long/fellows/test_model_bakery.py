import pytest
from model_bakery import baker, generators

from django_hilo.fields import HiLoField
from tests.long.fellows.market.models import Invoice, Order, Ticket

pytestmark = pytest.mark.django_db


def test_keys_are_ours():
    assert baker.make(Order).pk == "orders/1-A"
    assert baker.make(Invoice).pk == "invoices/1-A$orders/2-A"
    assert baker.prepare(Order).pk is None
    assert baker.make(Ticket).pk


def test_optional_fields(monkeypatch):
    with pytest.raises(TypeError, match="HiLoField'> is not supported by baker"):
        baker.make(Order, _fill_optional=True)
    monkeypatch.setattr(generators, "user_mapping", {})
    baker.generators.add(HiLoField, lambda: None)
    assert baker.make(Order, _fill_optional=True).pk == "orders/1-A"
    assert baker.prepare(Order, _fill_optional=True).pk is None
    assert baker.make(Ticket, _fill_optional=True).pk
