import pytest
from mixer.backend.django import mixer

from tests.apps.numbers.models import Item
from tests.apps.records.models import Invoice, Order

pytestmark = pytest.mark.django_db


def test_ids():
    assert "/" not in mixer.blend(Order).pk
    assert mixer.blend(Order, id=None).pk == "orders/1-A"
    assert mixer.blend(Invoice, id=None, order__id=None).pk == "invoices/1-A$orders/2-A"
    assert mixer.blend(Item).pk == Item.objects.get().pk
