"""Models with integer keys, declared or by default."""

from __future__ import annotations

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
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


class Numbered(models.Model):
    """An abstract base: each concrete model counts for itself."""

    id = HiLoBigAutoField(primary_key=True)

    class Meta:
        abstract = True


class Box(Numbered):
    """With a plain manager."""

    label = models.CharField(max_length=50, unique=True)
    text = models.CharField(max_length=50, default="")


class Crate(Numbered):
    """The sibling of Box."""

    label = models.CharField(max_length=50, default="")


class ItemProxy(Item):
    class Meta:
        proxy = True


class Basket(models.Model):
    items = models.ManyToManyField(Item, through="BasketItem")


class BasketItem(models.Model):
    basket = models.ForeignKey(Basket, models.CASCADE)
    item = models.ForeignKey(Item, models.CASCADE)
    count = models.IntegerField(default=1)


class Note(models.Model):
    """Belongs to an object of any model."""

    # The tables of these apps, which have no migrations, are made before this one.
    content_type = models.ForeignKey(ContentType, models.CASCADE, db_constraint=False)
    object_id = models.BigIntegerField()
    about = GenericForeignKey("content_type", "object_id")
    text = models.CharField(max_length=50, default="")


class PlaceManager(HiLoManager):
    def get_by_natural_key(self, name: str) -> Place:
        return self.get(name=name)


class Place(models.Model):
    """Fixtures may name it by its natural key."""

    name = models.CharField(max_length=50, unique=True)
    near = models.ForeignKey("self", models.SET_NULL, null=True)

    objects = PlaceManager()

    def natural_key(self) -> tuple[str]:
        return (self.name,)
