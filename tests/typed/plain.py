"""The types of ids where nothing but the annotations tells them."""

from __future__ import annotations

from typing import assert_type

from django.db import models

from django_hilo.fields import (
    BucketField,
    GaplessIdField,
    HiLoBigAutoField,
    HiLoField,
)


class Letter(models.Model):
    id = HiLoField(primary_key=True)
    bucket = BucketField()
    number = GaplessIdField(null=True)
    answered = HiLoField("letters", null=True)

    class Meta:
        app_label = "typed"


class Stamp(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    number = GaplessIdField()

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
