"""Models as a project writes them, for a type checker to read; no app of the tests."""

from __future__ import annotations

from django.db import models

from django_hilo.fields import BucketField, GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet


class Customer(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=100)

    objects = HiLoManager()

    class Meta:
        app_label = "typed"


class OrderQuerySet(HiLoQuerySet["Order"]):
    def open(self) -> OrderQuerySet:
        return self.filter(closed=False)


class Order(models.Model):
    id = HiLoField(primary_key=True)
    bucket = BucketField()
    customer = models.ForeignKey(Customer, models.PROTECT)
    closed = models.BooleanField(default=False)

    objects = HiLoManager()

    class Meta:
        app_label = "typed"


class Invoice(models.Model):
    id = GaplessIdField(primary_key=True)
    reference = HiLoField(collection="references", null=True)
    order = models.ForeignKey(Order, models.PROTECT)

    objects = HiLoManager()

    class Meta:
        app_label = "typed"
