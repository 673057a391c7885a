"""The same order and its lines, with each kind of key that is compared."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import uuid_utils.compat
from django.db import models, transaction
from sequences import get_next_value
from ulid import ULID

from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager


class Ordered(models.Model):
    name = models.CharField(max_length=64, default="")
    quantity = models.IntegerField(default=0)

    class Meta:
        abstract = True


def lines_of(order: type[models.Model]) -> Any:
    return models.ForeignKey(order, models.CASCADE, related_name="lines")


class AutoOrder(Ordered):
    id = models.BigAutoField(primary_key=True)


class AutoLine(Ordered):
    id = models.BigAutoField(primary_key=True)
    order = lines_of(AutoOrder)


class PrefetchedOrder(AutoOrder):
    class Meta:
        proxy = True


class PrefetchedLine(AutoLine):
    class Meta:
        proxy = True


class UuidOrder(Ordered):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class UuidLine(Ordered):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    order = lines_of(UuidOrder)


class Uuid7Order(Ordered):
    id = models.UUIDField(primary_key=True, default=uuid_utils.compat.uuid7)


class Uuid7Line(Ordered):
    id = models.UUIDField(primary_key=True, default=uuid_utils.compat.uuid7)
    order = lines_of(Uuid7Order)


def new_ulid() -> str:
    return str(ULID())


class UlidOrder(Ordered):
    id = models.CharField(primary_key=True, max_length=26, default=new_ulid)


class Order(Ordered):
    id = HiLoField(primary_key=True)
    objects = HiLoManager()


class Line(Ordered):
    id = HiLoField(primary_key=True)
    order = lines_of(Order)
    objects = HiLoManager()


class MixedLine(Ordered):
    id = models.BigAutoField(primary_key=True)
    order = models.ForeignKey(Order, models.CASCADE, related_name="+")


# Without its stubs no field of Django takes type arguments when it runs.
class Text(models.CharField):  # type: ignore[type-arg]
    """Text as a `HiLoField` stores it, without the second index for LIKE."""

    def db_type(self, connection: Any) -> str:
        if connection.vendor == "postgresql":
            return f"character varying({self.max_length})"
        return super().db_type(connection)


class TextOrder(Ordered):
    """Ids of the project's own, as far as Django alone can have them."""

    id = Text(primary_key=True, max_length=128)


class TextLine(Ordered):
    id = Text(primary_key=True, max_length=128)
    order = lines_of(TextOrder)


class WideOrder(Ordered):
    id = HiLoField(primary_key=True, width=10)
    objects = HiLoManager()


class WideLine(Ordered):
    id = HiLoField(primary_key=True, width=10)
    order = lines_of(WideOrder)
    objects = HiLoManager()


class NumberOrder(Ordered):
    id = HiLoBigAutoField(primary_key=True)
    objects = HiLoManager()


class NumberLine(Ordered):
    id = HiLoBigAutoField(primary_key=True)
    order = lines_of(NumberOrder)
    objects = HiLoManager()


class CounterRow(models.Model):
    name = models.CharField(primary_key=True, max_length=64)
    last = models.BigIntegerField(default=0)

    @classmethod
    def next(cls, name: str, using: str) -> int:
        """Return the next number as projects without a package write it."""
        with transaction.atomic(using=using):
            rows = cls.objects.using(using).select_for_update()
            row, _ = rows.get_or_create(name=name)
            row.last += 1
            row.save(using=using)
        return row.last


class CountedOrder(Ordered):
    """A counter row per insert."""

    id = models.BigIntegerField(primary_key=True)

    @classmethod
    def create(cls, using: str, **values: Any) -> CountedOrder:
        id = CounterRow.next("orders", using)
        return cls.objects.using(using).create(id=id, **values)


class Sequenced(Ordered):
    """django-sequences per insert, in a transaction as its documentation has it."""

    id = models.BigIntegerField(primary_key=True)

    class Meta:
        abstract = True

    @classmethod
    def create(cls, using: str, **values: Any) -> Any:
        with transaction.atomic(using, savepoint=False):
            id = get_next_value(cls._meta.db_table, using=using)
            return cls._default_manager.using(using).create(id=id, **values)


class SequencesOrder(Sequenced):
    pass


class GaplessOrder(Ordered):
    id = GaplessIdField(primary_key=True)


class SequencesLine(Ordered):
    id = models.BigIntegerField(primary_key=True)
    order = lines_of(SequencesOrder)


def _five(
    name: str, key: Callable[..., Any] | None, base: type[Ordered] = Ordered
) -> list[type[Ordered]]:
    """Return models that a test suite creates an object of each of."""
    return [
        type(
            f"{name}{number}",
            (base,),
            {"__module__": __name__} | ({"id": key(primary_key=True)} if key else {}),
        )
        for number in range(1, 6)
    ]


TEXTS = _five("Text", HiLoField)
INTEGERS = _five("Integer", HiLoBigAutoField)
AUTOS = _five("Auto", models.BigAutoField)
UUIDS = _five("Uuid", partial(models.UUIDField, default=uuid_utils.compat.uuid7))
NUMBERED = _five("Numbered", None, Sequenced)
