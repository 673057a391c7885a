"""`Model.objects` of a HiLoManager: Django's rules, by a shorter way."""

from __future__ import annotations

from unittest import mock

import pytest
from django.db import models
from django.test.utils import isolate_apps, override_settings

from django_hilo.fields import HiLoField
from django_hilo.managers import HiLoManager
from tests.records.models import Order


class Named(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()

    class Meta:
        abstract = True


def test_it_is_the_managers_that_django_knows():
    assert Order.objects is Order._meta.managers_map["objects"]
    assert Order.objects is Order._default_manager
    assert Order.objects.model is Order


def test_nobody_is_asked_for_what_no_model_of_ours_is(monkeypatch):
    """The way is shorter than Django's by that."""
    asked = []
    monkeypatch.setattr(type(Order._meta), "swapped", property(asked.append))
    assert Order.objects.model is Order
    assert asked == []


def test_no_instance_has_it():
    with pytest.raises(AttributeError, match="isn't accessible via Order instances"):
        Order().objects  # noqa: B018 - it is what fails


def test_no_abstract_model_has_it():
    with pytest.raises(AttributeError, match="Named is abstract"):
        Named.objects  # noqa: B018 - it is what fails


@isolate_apps("tests.records")
def test_each_model_has_its_own():
    class Parent(Named):
        others = HiLoManager()

        class Meta:
            app_label = "records"

    class Child(Parent):
        class Meta:
            app_label = "records"

    class Proxy(Parent):
        class Meta:
            app_label = "records"
            proxy = True

    for model in (Parent, Child, Proxy):
        assert model.objects.model is model
        assert model.others.model is model
        assert model.objects is not model.others
    Parent.add_to_class("late", HiLoManager())
    assert Parent.late.model is Parent


@isolate_apps("tests.records")
def test_no_swapped_model_has_it():
    class Swappable(Named):
        class Meta:
            app_label = "records"
            swappable = "RECORDS_SWAPPED"

    assert Swappable.objects.model is Swappable
    with (
        override_settings(RECORDS_SWAPPED="records.Order"),
        pytest.raises(AttributeError, match=r"swapped for 'records\.Order'"),
    ):
        Swappable.objects  # noqa: B018 - it is what fails


def test_it_can_be_replaced_for_a_while():
    kept = Order.objects
    with mock.patch.object(Order, "objects") as other:
        assert Order.objects is other
    assert Order.objects is kept
