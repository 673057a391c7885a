"""Objects with ids leave the garbage collector no more to look at than others."""

import gc
import sys

import pytest

from tests.apps.numbers.models import Item
from tests.apps.records.models import Order

ROWS = 500
# What is made once: plans of queries, ranges, blocks of ids.
ONCE = 250
# Python 3.14 tracks the dictionary of each `_state`, whatever it contains.
STATES = ROWS if sys.version_info >= (3, 14) else 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("model", [Order, Item])
def test_of_many_objects_with_ids(model):
    model.objects.bulk_create(model.objects.assign_ids([model(), model()]))
    objects = [model() for _ in range(ROWS)]
    gc.collect()
    before = len(gc.get_objects())
    model.objects.assign_ids(objects)
    model.objects.bulk_create(objects)
    gc.collect()  # mysqlclient's cursor keeps the keys that were returned
    assert len(gc.get_objects()) - before < ONCE + STATES
