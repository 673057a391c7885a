"""What a worker of django-tasks does."""

from __future__ import annotations

from django_tasks import task

from tests.long.fellows.market.models import Invoice, Order, Ticket


@task
def invoice(order_id: str) -> str:
    return Invoice.objects.create(order=Order.objects.get(pk=order_id)).pk


@task
def split(order_id: str, parts: int) -> list[str]:
    name = Order.objects.get(pk=order_id).name
    parts = Order.objects.bulk_create([Order(name=name) for _ in range(parts)])
    return [order.pk for order in parts]


@task
def number() -> int:
    return Ticket.objects.create().pk
