"""What the type of each id is, said to a type checker; nothing here is run."""

from typing import assert_type

from django.db import models

from django_hilo.generator import (
    aiter_ids,
    anext_id,
    anext_ids,
    anext_number,
    anext_numbers,
    areturn_ranges,
    iter_ids,
    next_id,
    next_ids,
    next_number,
    next_numbers,
    return_ranges,
)
from django_hilo.identifiers import DocumentId, parse
from django_hilo.sharding import bucket_of, shard_of
from django_hilo.sources import hibernate
from tests.typed.models import Customer, Invoice, Order, OrderQuerySet


def rows() -> None:
    customer = Customer.objects.create(name="Anna")
    assert_type(customer, Customer)
    assert_type(customer.id, int)
    order = Order.objects.create(customer=customer)
    assert_type(order, Order)
    assert_type(order.id, str)
    assert_type(order.customer_id, int)
    assert_type(order.bucket, int)
    invoice = Invoice.objects.get(order=order)
    assert_type(invoice, Invoice)
    assert_type(invoice.id, str)
    assert_type(invoice.reference, str | None)
    assert_type(invoice.order_id, str)
    assert_type(invoice.order.id, str)
    order.id = "orders/7-A"
    order.id = 7  # type: ignore[assignment]
    order.id = None
    order.pk = None  # a copy gets an id of its own
    customer.id = None
    invoice.reference = None
    assert_type(Order.objects.get_or_create(closed=True), tuple[Order, bool])


def keys() -> None:
    assert_type(Order().pk, str)
    assert_type(Customer().pk, int)
    assert_type(Invoice().pk, str)


def managers(customer: Customer, order: Order) -> None:
    orders = [Order(customer=customer) for _ in range(3)]
    assert_type(Order.objects.assign_ids(orders), list[Order])
    assert_type(Order.objects.bulk_create(orders), list[Order])
    assert_type(Order.objects.next_id(), str)
    assert_type(Order.objects.next_id(anchor=order), str)
    assert_type(Order.objects.next_ids(3), list[str])
    assert_type(Order.objects.anchored_to(order).first(), Order | None)
    assert_type(Order.objects.using("other").next_id(), str)
    assert_type(Order.objects.filter(closed=True).assign_ids(orders), list[Order])
    assert_type(Customer.objects.assign_ids([customer]), list[Customer])
    Order.objects.assign_ids([customer])  # type: ignore[list-item]
    assert_type(OrderQuerySet(Order).open().assign_ids(orders), list[Order])
    assert_type(OrderQuerySet(Order).open().next_id(), str)


def generators(order: Order) -> None:
    assert_type(next_id("shop.Order"), str)
    assert_type(next_id(Order, "other", anchor="orders/7-A"), str)
    assert_type(next_ids(order, 3), list[str])
    assert_type(next_number("orders"), int)
    assert_type(next_numbers(hibernate.PooledLo(50, sequence="s"), 3), list[int])
    assert_type(next(iter_ids(Order)), str)
    assert_type(return_ranges(), int)


async def twins(customer: Customer) -> None:
    order = await Order.objects.acreate(customer=customer)
    assert_type(order, Order)
    assert_type(order.id, str)
    assert_type(await Order.objects.anext_id(), str)
    assert_type(await Order.objects.anext_ids(3), list[str])
    assert_type(await Order.objects.aassign_ids([order]), list[Order])
    assert_type(await anext_id(Order), str)
    assert_type(await anext_ids(Order, 3), list[str])
    assert_type(await anext_number("orders"), int)
    assert_type(await anext_numbers("orders", 3), list[int])
    assert_type(await areturn_ranges(), int)
    async for id in aiter_ids(Order):
        assert_type(id, str)


def texts(order: models.Model) -> None:
    read = parse("orders/33-A")
    assert_type(read, DocumentId)
    assert_type(read.number, int)
    assert_type(read.anchor, str | None)
    assert_type(str(read), str)
    assert_type(bucket_of("orders/33-A"), int)
    assert_type(shard_of("orders/33-A", 3), int)
