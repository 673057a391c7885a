"""The types of ids where nothing but the annotations tells them."""

from typing import ClassVar, Self, assert_type

from django.db import models

from django_hilo.fields import BucketField, GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet


class Letter(models.Model):
    id = HiLoField(primary_key=True)
    bucket = BucketField()
    number = GaplessIdField[str | None, str | None](null=True)
    answered = HiLoField[str | None, str | None](collection="letters", null=True)

    objects: ClassVar[HiLoManager[Self]] = HiLoManager()

    class Meta:
        app_label = "typed"


class Stamp(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    number = GaplessIdField("number", collection="stamps")

    class Meta:
        app_label = "typed"


def ids(letter: Letter, stamp: Stamp) -> None:
    assert_type(letter.id, str)
    assert_type(letter.bucket, int)
    assert_type(letter.number, str | None)
    assert_type(letter.answered, str | None)
    assert_type(stamp.id, int)
    assert_type(stamp.number, str)
    letter.id = "letters/7-A"
    letter.id = 7  # type: ignore[assignment]
    letter.answered = None
    stamp.number = None
    stamp.id = None


def managers(letter: Letter, stamp: Stamp) -> None:
    assert_type(Letter.objects, HiLoManager[Letter])
    assert_type(Letter.objects.next_id(anchor=letter), str)
    assert_type(Letter.objects.next_ids(3), list[str])
    assert_type(Letter.objects.assign_ids([letter]), list[Letter])
    assert_type(Letter.objects.bulk_create([letter]), list[Letter])
    assert_type(Letter.objects.using("other").next_id(), str)
    assert_type(Letter.objects.anchored_to(letter).first(), Letter | None)
    open_ones = Letter.objects.filter(number=None)
    assert_type(open_ones, HiLoQuerySet[Letter])
    assert_type(open_ones.exclude(pk="letters/7-A").get(), Letter)
    assert_type(open_ones.assign_ids([letter]), list[Letter])
    Letter.objects.assign_ids([stamp])  # type: ignore[list-item]


async def twins(letter: Letter) -> None:
    assert_type(await Letter.objects.anext_id(), str)
    assert_type(await Letter.objects.anext_ids(3), list[str])
    assert_type(await Letter.objects.aassign_ids([letter]), list[Letter])
