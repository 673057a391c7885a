"""What a worker of django-tasks does."""

from django_tasks import task

from tests.long.fellows.market.models import Invoice, Order


@task
def invoice(order_id: str) -> str:
    return Invoice.objects.create(order=Order.objects.get(pk=order_id)).pk
