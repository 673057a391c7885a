from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hilo.anchors import anchor_of
from django_hilo.exceptions import HiLoError, InvalidDocumentId
from tests.records.models import Invoice, Order, OrderLine

pytestmark = pytest.mark.django_db


def test_a_key_is_enough():
    with CaptureQueriesContext(connection) as queries:
        assert anchor_of(OrderLine(order_id="orders/7-A"), "order") == "orders/7-A"
    assert not queries.captured_queries


def test_an_unsaved_object_that_has_its_id():
    line = OrderLine(order=Order())
    Order.objects.assign_ids([line.order])
    assert anchor_of(line, "order") == "orders/1-A"


def test_through_relations():
    line = OrderLine(order=Order(name="x"))
    assert anchor_of(line, "order__name") == "x"
    Order.objects.create(id="orders/7-A", name="y")
    assert anchor_of(OrderLine(order_id="orders/7-A"), "order__name") == "y"


def test_a_function_and_a_field():
    assert anchor_of(Order(name="x"), lambda order: order.name * 2) == "xx"
    assert anchor_of(Order(name="x"), "name") == "x"


@pytest.mark.parametrize(
    ("instance", "anchor"),
    [
        (Invoice(), "order"),
        (Invoice(), "order__name"),
        (Invoice(order_id="orders/404-A"), "order__name"),
        (Order(name=""), "name"),
        (Order(), lambda order: None),
    ],
)
def test_what_is_missing(instance, anchor):
    with pytest.raises(HiLoError, match=r"has no id to be given.*assign_ids"):
        anchor_of(instance, anchor)


def test_an_anchor_that_no_database_could_store():
    with pytest.raises(InvalidDocumentId):
        anchor_of(Order(name="\x00"), "name")
