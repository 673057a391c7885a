from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

app = Celery("tests")
folder = os.environ.get("HILO_TEST_BROKER", ".")
app.conf.update(
    broker_url="filesystem://",
    broker_transport_options={
        "data_folder_in": folder,
        "data_folder_out": folder,
        "control_folder": folder,
    },
    worker_hijack_root_logger=False,
)

import django  # noqa: E402

django.setup()


@app.task
def create_order() -> None:
    from tests.records.models import Order

    Order.objects.create(name=str(os.getpid()))
