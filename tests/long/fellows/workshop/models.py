"""More models with HiLo keys, each as the users of one package declare theirs."""

from auditlog.models import AuditlogHistoryField
from auditlog.registry import auditlog
from django.db import models
from polymorphic.managers import PolymorphicManager
from polymorphic.models import PolymorphicModel
from polymorphic.query import PolymorphicQuerySet
from tree_queries.models import TreeNode

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet
from tests.support.databases import CHOSEN

# django-auditlog


class Machine(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)
    tools = models.ManyToManyField("Tool")
    history = AuditlogHistoryField(pk_indexable=False)

    objects = HiLoManager()


class Repair(models.Model):
    id = HiLoField(primary_key=True, anchor="machine")
    machine = models.ForeignKey(Machine, models.CASCADE)
    history = AuditlogHistoryField(pk_indexable=False, delete_related=True)

    objects = HiLoManager()


class Tool(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=50)
    history = AuditlogHistoryField()

    objects = HiLoManager()


auditlog.register(Machine, m2m_fields={"tools"})
auditlog.register(Repair)
auditlog.register(Tool)


# django-polymorphic


class VehicleQuerySet(HiLoQuerySet, PolymorphicQuerySet):
    pass


class Vehicle(PolymorphicModel):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = PolymorphicManager.from_queryset(VehicleQuerySet)()


class Car(Vehicle):
    doors = models.IntegerField(default=4)


class Truck(Vehicle):
    load = models.IntegerField(default=0)


class Device(PolymorphicModel):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = PolymorphicManager.from_queryset(VehicleQuerySet)()


class Phone(Device):
    number = models.CharField(max_length=20)


class Screen(Device):
    inches = models.IntegerField(default=20)


# django-tree-queries


class Topic(TreeNode):
    id = HiLoField(primary_key=True, max_length=None if CHOSEN == "postgres" else 64)

    class Meta:
        ordering = ["id__number"]


class Theme(TreeNode):
    id = HiLoField(primary_key=True)
