"""Routers that place rows by what they are asked about."""

import pytest
from django.db import models

from tests.apps.numbers.models import Box, Item, Part
from tests.apps.records.models import Order, OrderLine, Plain
from tests.support.databases import CHOSEN

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


def related(model, parent):
    """What a related manager of a parent has, without a HiLoManager."""
    return models.QuerySet(model, hints={"instance": parent})


class TestRelatedManagers:
    """They tell routers the parent, and tell no field."""

    def test_ids_of_the_database_are_inserted(self):
        near = Order.objects.create(name="near")
        related(OrderLine, near).bulk_create([OrderLine(order=near)], batch_size=1)
        assert OrderLine.objects.get().pk.endswith("-A")

    def test_so_are_rows_of_another_database(self):
        Plain.objects.bulk_create([Plain(name="a")])
        Plain.objects.using("other").bulk_create(Plain.objects.all())
        Plain.objects.using("other").bulk_create([Plain(id="plain-things/50-B")])
        assert Plain.objects.using("other").count() == 2

    def test_one_counter_of_both_is_the_right_one(self, settings):
        settings.HILO = {**settings.HILO, "DATABASE": "default"}
        Plain.objects.using("other").bulk_create([Plain()])
        assert Plain.objects.using("other").get().pk.endswith("-A")

    def test_integer_keys_come_from_the_rows_database(self):
        far = Item(name="far")
        far.save()
        for _ in range(3):
            Part(item=far, name="far").save()
            if CHOSEN in ("sqlite", "postgres"):  # W107 elsewhere
                far.parts.bulk_create([Part(item=far)])
        assert Part.objects.using("other").exists()
        assert not Part.objects.using("default").exists()
