"""Models with integer keys, declared or by default."""

from __future__ import annotations

from django.db import models

from django_hilo.fields import HiLoBigAutoField
from django_hilo.managers import HiLoManager


class Item(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Tag(models.Model):
    """Its key comes from the app's default_auto_field; so does that of its M2M."""

    name = models.CharField(max_length=50, default="")
    items = models.ManyToManyField(Item, related_name="tags")


class Part(models.Model):
    item = models.ForeignKey(Item, models.CASCADE, related_name="parts")
    name = models.CharField(max_length=50, default="")


class SpecialItem(Item):
    """A child by multi-table inheritance."""

    extra = models.CharField(max_length=50, default="")
