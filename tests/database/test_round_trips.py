"""How many messages a reservation sends to the server."""

import pytest
from django.db import transaction
from django.db.backends.signals import connection_created

from django_hilo.generator import next_number, next_numbers
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.foreign import needs_postgresql, needs_server

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


@needs_server
@pytest.mark.parametrize(
    ("model", "most"), [(Order, 5), pytest.param(Item, 6, marks=needs_postgresql)]
)
def test_a_range_is_one_short_transaction(model, most, receive):
    """BEGIN, its bounds, SELECT ... FOR UPDATE, UPDATE, COMMIT; a sequence's key."""
    sent = []

    def note(connection, **kwargs):
        connection.force_debug_cursor, connection.queries_log = True, sent

    next_number(model)  # makes the row
    with transaction.atomic():
        receive(connection_created, note)
        next_numbers(model, 1000)
    assert 0 < len(sent) <= most, sent
