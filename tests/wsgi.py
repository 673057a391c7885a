"""A site of one page, which creates an order and shows its id and the process's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    from django.core.signals import request_finished, request_started
    from django.db import transaction

    from tests.records.models import Order

    request_started.send(None, environ=environ)
    try:
        with transaction.atomic():
            order = Order.objects.create(name=str(os.getpid()))
    finally:
        request_finished.send(None)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{order.pk} {os.getpid()}".encode()]


if os.environ.get("HILO_TEST_WARM"):
    # As code does that runs before a server forks: the master holds a range.
    from django.db import connections

    from tests.records.models import Order

    Order.objects.create(name="master")
    connections.close_all()
