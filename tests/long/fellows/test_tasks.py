"""django-tasks, with the workers and the database backend of django-tasks-db."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.core.management import call_command
from django.db import connections
from django_tasks import TaskResultStatus, default_task_backend
from django_tasks_db.models import DBTaskResult

from tests.conftest import PROJECT
from tests.long.fellows.market.models import Invoice, Order, Ticket
from tests.long.fellows.market.tasks import invoice, number, split
from tests.support.patience import LONGEST

pytestmark = pytest.mark.django_db(transaction=True)


def work_here():
    call_command("db_worker", batch=True, startup_delay=False, interval=0, verbosity=0)


@pytest.fixture
def workers():
    """Let workers in processes of their own do all that is enqueued."""

    def run(count):
        names = {"default": str(connections["default"].settings_dict["NAME"])}
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.long.fellows.settings",
            "HILO_TEST_NAMES": json.dumps(names),
        }
        command = [sys.executable, "-m", "django", "db_worker", "--batch"]
        command += ["--no-startup-delay", "--interval=0.01"]
        running = [
            subprocess.Popen(
                command,
                cwd=PROJECT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(count)
        ]
        for process in running:
            output, _ = process.communicate(timeout=LONGEST)
            assert process.returncode == 0, output

    return run


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


def test_workers_of_their_own_give_ids_beside_this_process(workers):
    order = Order.objects.create(name="tea")
    results = [split.enqueue(order.pk, 20) for _ in range(6)]
    numbers = [number.enqueue() for _ in range(6)]

    workers(2)

    given = [id for ids in values(results) for id in ids]
    assert len(set(given)) == 120
    assert Order.objects.count() == 121
    assert len(set(values(numbers))) == Ticket.objects.count() == 6
    assert Order.objects.create().pk not in given
