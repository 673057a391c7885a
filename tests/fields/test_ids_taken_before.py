"""An object that is created with an id taken before, and twice if a client asks again.

docs/how-to/rest.md does so by PUT.
"""

import pytest
from django.db.models.signals import pre_save

from tests.apps.records.models import Order
from tests.support.databases import CHOSEN
from tests.support.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


def put(id, name):
    return Order.objects.update_or_create(pk=id, defaults={"name": name})


def test_the_second_request_updates():
    id = Order.objects.next_id()
    assert [put(id, name)[1] for name in ("first", "again")] == [True, False]
    assert list(Order.objects.values_list("id", "name")) == [(id, "again")]
    assert Order.objects.create().pk != id


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_both_at_once_make_one_row(receive):
    id, others = Order.objects.next_id(), []

    def interrupt(instance, **kwargs):
        if not others:  # between the look and the INSERT of the first
            others.append("once")
            others[0] = in_thread(lambda: put(id, "other")[1])

    receive(pre_save, interrupt, sender=Order)
    assert put(id, "first")[1] is False
    assert others == [True]
    assert list(Order.objects.values_list("id", "name")) == [(id, "first")]
