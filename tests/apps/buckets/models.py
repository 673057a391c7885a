"""Models with columns of buckets."""

from django.db import models

from django_hilo.fields import BucketField, HiLoField
from django_hilo.managers import HiLoManager


class Deal(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()


class Part(models.Model):
    id = HiLoField(primary_key=True, anchor="deal")
    deal = models.ForeignKey(Deal, models.CASCADE, related_name="parts")
    size = models.IntegerField(default=0)
    bucket = BucketField(db_index=True)

    objects = HiLoManager()


class Check(models.Model):
    id = HiLoField(collection="checks", primary_key=True, anchor="part__deal")
    part = models.ForeignKey(Part, models.CASCADE, related_name="checks")
    bucket = BucketField(null=True)

    objects = HiLoManager()


class Parcel(models.Model):
    """Buckets of a number that is no key, and of a relation; plain manager."""

    bucket = BucketField("number", null=True)
    number = HiLoField(collection="parcels", null=True, unique=True)
    deal = models.ForeignKey(Deal, models.CASCADE, null=True, db_constraint=False)
    deals_bucket = BucketField("deal", null=True)
    size = models.IntegerField(default=0)
