"""What a master may have done before it forks: it holds a range and a connection."""

import os


def warm() -> None:
    """Take an id in the master where ``HILO_TEST_WARM`` is set."""
    if not os.environ.get("HILO_TEST_WARM"):
        return
    from django.db import connections, transaction

    from tests.apps.records.models import Order

    with transaction.atomic():
        Order.objects.create(name="master")
    # Django's own demand on who forks; ours must follow by itself.
    connections.close_all()
