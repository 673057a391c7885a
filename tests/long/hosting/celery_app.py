import os
import time

import django
from celery import Celery
from celery.signals import worker_process_shutdown

from tests.support.patience import PATIENCE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.long.hosting.settings")
django.setup()

app = Celery("tests.long.hosting")
folder = os.environ.get("HILO_TEST_BROKER", ".")
# kombu writes messages piece by piece: the worker may not see them meanwhile.
outbox = os.environ.get("HILO_TEST_OUTBOX", folder)
app.conf.update(
    broker_url="filesystem://",
    broker_transport_options={
        "data_folder_in": folder,
        "data_folder_out": outbox,
        "control_folder": folder,
        "polling_interval": 0.02,
    },
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
    # It kills a child that is not up after 4 s.
    worker_proc_alive_timeout=PATIENCE,
)


@app.task
def create_order(journal: str) -> None:
    from django.db import transaction

    from tests.apps.records.models import Order

    began = time.monotonic_ns()
    with transaction.atomic():
        order = Order.objects.create()
    line = f"{order.pk} {os.getpid()} {began} {time.monotonic_ns()}\n"
    append(journal, line)


def append(path: str, line: str) -> None:
    """Append in one write: lines of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


@worker_process_shutdown.connect
def note_end(**kwargs: object) -> None:
    """Note that this child ends by itself; receivers before this one are through."""
    append(f"{folder}/journal.txt.ended", f"{os.getpid()}\n")
