import re

import pytest
from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer

from tests.long.fellows.market.models import Invoice, Order


@pytest.mark.django_db
def test_groups():
    """The name of a group has neither a slash nor a dollar sign."""
    invoice = Invoice.objects.create(order=Order.objects.create())
    join = async_to_sync(InMemoryChannelLayer().group_add)
    for id in (invoice.order.pk, invoice.pk):
        with pytest.raises(TypeError, match="Group name must be"):
            join(id, "channel")
        join(re.sub("[/$]", ".", id), "channel")
