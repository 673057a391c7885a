"""How many messages a reservation sends to the server, when all is warm."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hilo._database import own_connection
from django_hilo._database.dialects.base import rows_of
from django_hilo.generator import next_number, next_numbers
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN
from tests.support.foreign import needs_postgresql

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


@needs_postgresql
@pytest.mark.parametrize(("model", "most"), [(Order, 5), (Item, 6)])
def test_on_postgresql(model, most):
    next_number(model)
    next_numbers(model, 31)
    with CaptureQueriesContext(connection) as sent:  # BEGIN and COMMIT among them
        next_number(model)
    assert len(sent) == most, sent.captured_queries


@pytest.mark.skipif(CHOSEN not in ("mariadb", "mysql"), reason="it uses the ORM's way")
def test_on_the_own_connection_of_mysql(monkeypatch):
    def questions() -> int:
        own = own_connection.of_this_process()["default"]._wrapper
        return int(rows_of(own, "SHOW SESSION STATUS LIKE 'Questions'")[0][1])

    monkeypatch.setattr(own_connection, "in_tests", lambda: False)
    monkeypatch.setattr(own_connection, "clock", lambda: 0.0)  # all is one burst
    next_number(Order)
    next_numbers(Order, 32)
    before = questions()
    next_numbers(Order, 64)
    # BEGIN, SELECT ... FOR UPDATE, UPDATE, COMMIT; and this question.
    assert questions() - before == 4 + 1
    own_connection.close_unused()
