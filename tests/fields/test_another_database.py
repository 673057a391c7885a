"""Objects that are saved to another database, after a rollback on the first.

There a row of another object may have the id: docs/how-to/several-databases.md.
"""

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError

from tests.apps.numbers.models import Item
from tests.apps.records.models import Letter, Order
from tests.support.rollbacks import rolled_back

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def names(model) -> list[str]:
    return sorted(model.objects.using("other").values_list("name", flat=True))


@pytest.fixture
def lost(request, settings):
    """An object without a row, and the row of another that has its id elsewhere."""
    model = request.param
    settings.HILO = {**settings.HILO, "NODE_TAG": "A"}
    lost = model(name="lost")
    with rolled_back():
        lost.save()
    model.objects.using("other").create(pk=lost.pk, name="its own")
    return lost


with_same_ids = pytest.mark.parametrize("lost", [Group, Item, Order], indirect=True)


@with_same_ids
def test_a_save_writes_over_the_row_that_has_the_id_there(lost):
    """As Django does with each key, a BigAutoField's too."""
    lost.save(using="other")
    assert names(type(lost)) == ["lost"]


@with_same_ids
def test_an_insert_is_refused(lost):
    with pytest.raises(IntegrityError):
        lost.save(using="other", force_insert=True)
    assert names(type(lost)) == ["its own"]


@with_same_ids
def test_without_its_id_it_gets_one_of_that_database(lost):
    lost.pk = None
    lost.save(using="other")
    assert names(type(lost)) == ["its own", "lost"]


def test_a_node_tag_for_each_database_keeps_ids_apart():
    lost = Order(name="lost")
    with rolled_back():
        lost.save()
    Order.objects.using("other").create(name="its own")
    lost.save(using="other")
    assert names(Order) == ["its own", "lost"]


def test_a_gapless_number_is_taken_anew():
    lost = Letter(name="lost")
    with rolled_back():
        lost.save()
    Letter.objects.using("other").create(name="its own")
    lost.save(using="other")
    assert names(Letter) == ["its own", "lost"]
