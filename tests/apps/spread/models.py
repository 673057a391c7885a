"""Models whose rows may be spread over shards, and columns with buckets."""

from __future__ import annotations

from django.db import models

from django_hilo.fields import BucketField, HiLoField
from django_hilo.managers import HiLoManager


class Label(models.Model):
    """Each shard may have a copy of its rows."""

    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Client(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Firm(Client):
    vat = models.CharField(max_length=50, default="")


class Profile(models.Model):
    """Its key is that of the client."""

    client = models.OneToOneField(Client, models.CASCADE, primary_key=True)
    text = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Deal(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="", blank=True)
    # Of another shard perhaps.
    client = models.ForeignKey(
        Client, models.DO_NOTHING, null=True, blank=True, db_constraint=False
    )
    label = models.ForeignKey(Label, models.PROTECT, null=True, blank=True)
    labels = models.ManyToManyField(Label, related_name="+")

    objects = HiLoManager()


class Part(models.Model):
    """On the shard of its deal."""

    id = HiLoField(primary_key=True, anchor="deal")
    deal = models.ForeignKey(Deal, models.CASCADE, related_name="parts")
    size = models.IntegerField(default=0)
    bucket = BucketField(db_index=True)

    objects = HiLoManager()


class Check(models.Model):
    """On the shard of its part's deal."""

    id = HiLoField("checks", primary_key=True, anchor="part__deal")
    part = models.ForeignKey(Part, models.CASCADE, related_name="checks")
    bucket = BucketField(null=True)

    objects = HiLoManager()


class Remark(models.Model):
    """On a shard of its own, so most of its deals are out of reach."""

    id = HiLoField(primary_key=True)
    deal = models.ForeignKey(Deal, models.CASCADE, null=True, related_name="remarks")
    text = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Parcel(models.Model):
    """Buckets of a number that is no key, and of a relation; plain manager."""

    bucket = BucketField("number", null=True)
    number = HiLoField("parcels", null=True, unique=True)
    deal = models.ForeignKey(Deal, models.CASCADE, null=True, db_constraint=False)
    deals_bucket = BucketField("deal", null=True)
    size = models.IntegerField(default=0)
