"""Models whose numbers are series: of a tenant, a year, a day."""

from __future__ import annotations

from django.db import models

from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.managers import HiLoManager


class Tenant(models.Model):
    id = HiLoField(primary_key=True, collection="tenants")
    slug = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Charge(models.Model):
    id = HiLoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.PROTECT)
    date = models.DateField()
    number = GaplessIdField(
        per=["tenant", "date.year"], look="INV-{date.year}-{number:04}"
    )

    objects = HiLoManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="charges_of_a_tenant"
            )
        ]


class Request(models.Model):
    id = HiLoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.PROTECT)
    number = HiLoField(per=["tenant"], look="SUP-{number}", capacity=1, max_capacity=1)

    objects = HiLoManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="one_request_number"
            )
        ]


class Visit(models.Model):
    """Its key is a series of each day; the look is that of the counter's name."""

    id = HiLoField(primary_key=True, per=["at.year", "at.month", "at.day"])
    at = models.DateTimeField()

    objects = HiLoManager()


class CreditNote(Charge):
    """A child of a model with a series, which has one of its own."""

    credit = GaplessIdField(
        per=["date.year"], look="CR{date.year}-{number}", unique=True
    )

    objects = HiLoManager()


class Slip(models.Model):
    """An abstract base: each model has series of its own."""

    place = models.CharField(max_length=200)
    slip = GaplessIdField(per=["place"], unique=True)

    objects = HiLoManager()

    class Meta:
        abstract = True


class PinkSlip(Slip):
    id = HiLoField(primary_key=True)


class BlueSlip(Slip):
    id = HiLoField(primary_key=True)


class Receipt(models.Model):
    """Its key has no gap in each place."""

    id = GaplessIdField(primary_key=True, per=["place"], look="{place}-{number}")
    place = models.SlugField()
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()
