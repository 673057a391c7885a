"""Models in all the shapes that a HiLoField meets."""

from __future__ import annotations

from functools import singledispatch

from django.db import models

from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.identifiers import parse
from django_hilo.managers import HiLoManager


class Order(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class OrderLine(models.Model):
    id = HiLoField(primary_key=True)
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    quantity = models.IntegerField(default=1)

    objects = HiLoManager()


class Invoice(models.Model):
    id = HiLoField(primary_key=True, anchor="order")
    order = models.ForeignKey(Order, models.PROTECT)

    objects = HiLoManager()


class User(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()


class Product(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()


class Plain(models.Model):
    """Without a HiLoManager."""

    id = HiLoField(collection="plain-things", primary_key=True)
    name = models.CharField(max_length=50, default="")


class Numbered(models.Model):
    """With an AutoField key and a HiLo number beside it."""

    number = HiLoField(collection="numbers", unique=True, null=True)
    note = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Base(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()

    class Meta:
        abstract = True


class Car(Base):
    pass


class Truck(Base):
    pass


class CarProxy(Car):
    class Meta:
        proxy = True


class Place(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Restaurant(Place):
    stars = models.IntegerField(default=0)


class Bistro(Restaurant):
    code = HiLoField(collection="bistro-codes", unique=True)


class Seat(models.Model):
    pk = models.CompositePrimaryKey("place_id", "number")
    place = models.ForeignKey(Place, models.CASCADE)
    number = HiLoField(collection="seats")

    objects = HiLoManager()


class PersonManager(HiLoManager):
    def get_by_natural_key(self, email: str) -> Person:
        return self.get(email=email)


class Person(models.Model):
    id = HiLoField(primary_key=True)
    email = models.CharField(max_length=50, unique=True)

    objects = PersonManager()

    def natural_key(self) -> tuple[str]:
        return (self.email,)


class Editable(models.Model):
    id = HiLoField(collection="editables", primary_key=True, editable=True)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


@singledispatch
def named(instance: models.Model, document_id: str) -> str:
    """Return the id of an object of a class that nobody registered."""
    return f"{document_id}-{getattr(instance, 'name', '')}"


class Worker(models.Model):
    """With a convention; most specific class first."""

    id = HiLoField(primary_key=True, convention=named)
    name = models.CharField(max_length=50, default="")

    objects = HiLoManager()


class Manager(Worker):
    level = models.IntegerField(default=1)


class Boss(Worker):
    class Meta:
        proxy = True


@named.register
def _of_worker(instance: Worker, document_id: str) -> str:
    return f"staff/{instance.name}/{parse(document_id).number}"


@named.register
def _of_manager(instance: Manager, document_id: str) -> str:
    return f"managers/{instance.name}"


class Sortable(models.Model):
    id = HiLoField(primary_key=True, width=19)

    objects = HiLoManager()


class Claim(models.Model):
    """Takes RavenDB's identities and server-side ids."""

    id = HiLoField(primary_key=True, server_ids=True)
    name = models.CharField(max_length=50, unique=True, null=True)

    objects = HiLoManager()


class Reply(models.Model):
    id = HiLoField(primary_key=True, anchor="claim", server_ids=True)
    claim = models.ForeignKey(Claim, models.CASCADE)

    objects = HiLoManager()


class Letter(models.Model):
    id = GaplessIdField(primary_key=True)
    name = models.CharField(max_length=50, unique=True, null=True)

    objects = HiLoManager()


class PlainLetter(models.Model):
    """Without a HiLoManager, and the number beside the key."""

    number = GaplessIdField(collection="plain-letters", unique=True, null=True)
    name = models.CharField(max_length=50, unique=True, null=True)


class Registered(models.Model):
    """Both kinds of ids."""

    id = HiLoField(primary_key=True)
    number = GaplessIdField(collection="registrations", unique=True)
    name = models.CharField(max_length=50, unique=True, null=True)

    objects = HiLoManager()


class Ticket(models.Model):
    """Its number is the first part of its key, and unique by a constraint."""

    pk = models.CompositePrimaryKey("number", "place_id")
    place = models.ForeignKey(Place, models.CASCADE)
    number = HiLoField(collection="seat-tickets")

    objects = HiLoManager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["number"], name="one_ticket")]
