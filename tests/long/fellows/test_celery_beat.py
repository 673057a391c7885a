import json

import pytest
from celery import Celery

from tests.long.fellows.market.models import Invoice, Order, Ticket

pytest.importorskip("django_celery_beat", reason="It does not take this Django.")

from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

# Its scheduler closes connections.
pytestmark = pytest.mark.django_db(transaction=True)

app = Celery("market", set_as_current=False)
app.conf.update(task_always_eager=True, task_eager_propagates=True)


@app.task(name="invoice")
def invoice(order: str) -> None:
    Invoice.objects.create(order_id=order)


@app.task(name="rename")
def rename(ticket: int) -> None:
    Ticket.objects.filter(pk=ticket).update(name="due")


def periodic(task: str, **kwargs: object) -> PeriodicTask:
    every, _ = IntervalSchedule.objects.get_or_create(every=1, period="hours")
    made = PeriodicTask(name=task, task=task, interval=every, kwargs=json.dumps(kwargs))
    made.save()
    return made


def test_keys_of_objects_are_arguments():
    order, ticket = Order.objects.create(), Ticket.objects.create()
    periodic("invoice", order=order.pk)
    periodic("rename", ticket=ticket.pk)
    scheduler = DatabaseScheduler(app=app)
    for entry in scheduler.schedule.values():
        scheduler.apply_async(entry, producer=None)
    scheduler.sync()
    assert Invoice.objects.get().pk.endswith(f"-A${order.pk}")
    ticket.refresh_from_db()
    assert ticket.name == "due"
    assert {each.total_run_count for each in PeriodicTask.objects.all()} == {1}


def test_the_pages_of_the_admin(pages):
    task = periodic("invoice", order="orders/1-A")
    assert "invoice" in pages.get(pages.list(PeriodicTask))
    assert "orders/1-A" in pages.get(pages.of(task))
