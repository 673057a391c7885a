"""django-tasks, with the workers and the database backend of django-tasks-db."""

import pytest
from django.core.management import call_command
from django_tasks import TaskResultStatus, default_task_backend
from django_tasks_db.models import DBTaskResult

from tests.long.fellows.market.models import Invoice, Order
from tests.long.fellows.market.tasks import invoice

pytestmark = pytest.mark.django_db(transaction=True)


def work_here():
    call_command("db_worker", batch=True, startup_delay=False, interval=0, verbosity=0)


def values(results):
    for result in results:
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL, result.errors
    return [result.return_value for result in results]


def test_ids_go_to_a_worker_and_come_back():
    order = Order.objects.create()
    result = invoice.enqueue(order.pk)
    assert DBTaskResult.objects.get().args_kwargs["args"] == ["orders/1-A"]
    work_here()
    assert values([result]) == ["invoices/1-A$orders/1-A"]
    again = default_task_backend.get_result(result.id)
    assert again.return_value == Invoice.objects.get().pk
