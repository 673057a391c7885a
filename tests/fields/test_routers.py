"""Routers that place rows by what they are asked about."""

import pytest
from django.db import models

from tests.apps.numbers.models import Box
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(databases=["default", "other"])


class ByName:
    """Places an object by its name, and rows of which it knows nothing by default."""

    def db_for_write(self, model, instance=None, **hints):
        is_far = "far" in (getattr(instance, "name", ""), getattr(instance, "text", ""))
        return "other" if is_far else None


@pytest.fixture(autouse=True)
def routers(settings):
    settings.DATABASE_ROUTERS = [ByName()]


def test_a_plain_bulk_create_takes_ids_where_its_rows_go():
    models.QuerySet(Order).bulk_create([Order(name="far"), Order(name="near")])
    assert Order.objects.using("default").count() == 2
    ids = Order.objects.using("default").values_list("pk", flat=True)
    assert all(id.endswith("-A") for id in ids)


def test_integer_keys_too():
    for n in range(3):
        Box.objects.bulk_create([Box(text="far", label=f"{n}")])
        Box(text="near", label=f"near{n}").save()
    assert Box.objects.using("default").count() == 6


def test_saves_go_where_the_router_says():
    far = Order(name="far")
    far.save()
    assert far._state.db == "other"
    assert far.pk.endswith("-B")
