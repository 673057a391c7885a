"""Those who meet the counters from outside of the plans."""

import time
from typing import Any

from django.db import connections, transaction

from tests.long.torture.counters import ORDERS
from tests.long.torture.errors import EXPECTED, expect
from tests.long.torture.notes import note
from tests.long.torture.operations import give
from tests.long.torture.settings import USER


def hold(counter: str, seconds: float) -> None:
    """Hold a counter's row, or all of SQLite, in a transaction of one's own."""
    from django_hilo.models import HiLoDocument

    try:
        with transaction.atomic():
            rows = HiLoDocument.objects.select_for_update()
            found = list(rows.filter(pk=counter))
            note("did", f"stranger holds {len(found)} rows")
            time.sleep(seconds)
    except EXPECTED as error:
        expect(error)
    connections.close_all()


def administer(by: int) -> None:
    """Raise Max by hand, in the admin."""
    from django.contrib.admin.utils import quote
    from django.contrib.auth import get_user_model
    from django.contrib.sessions.backends.base import UpdateError
    from django.test import Client

    from django_hilo.models import HiLoDocument

    try:
        row = HiLoDocument.objects.get(pk=ORDERS)
        client = Client()
        client.force_login(get_user_model().objects.get(username=USER))
        sent: dict[str, Any] = {"max": row.max + by, "initial-max": row.max}
        page = f"/admin/django_hilo/hilodocument/{quote(ORDERS)}/change/"
        response = client.post(page, {**sent, "_save": "Save"})
        # 200: the form again, since Max is over it by now.
        assert response.status_code in (302, 200), response.status_code
        note("did", f"admin's edit: {response.status_code}")
    except (*EXPECTED, UpdateError, HiLoDocument.DoesNotExist) as error:
        expect(error)
    connections.close_all()


def take_alone() -> None:
    """Take one id, at the first try, when all others have ended; note its seconds."""
    from django.conf import settings

    from django_hilo.generator import next_id

    settings.HILO = {**settings.HILO, "RETRY_FOR": 0}
    start = time.monotonic()
    give([next_id("orders")])
    note("alone", round(time.monotonic() - start, 3))
    connections.close_all()


GUESTS = {"hold": hold, "administer": administer, "take_alone": take_alone}
