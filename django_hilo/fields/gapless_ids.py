"""Gapless ids of instances: the number and the row belong to one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import models, transaction

from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.gapless import next_gapless_numbers, seed_gapless_number
from django_hilo.identifiers import check_separator, id_start
from django_hilo.models import GaplessCounter
from django_hilo.sharding.placement import is_sharded
from django_hilo.targets import home_of

if TYPE_CHECKING:
    from django_hilo.fields.base import IdField


@contextmanager
def given(
    field: IdField,
    instances: Sequence[models.Model],
    using: str,
    end: Callable[[models.Model], str] = lambda instance: "",
) -> Iterator[None]:
    """Give gapless ids for rows that are inserted in the block, or take them back."""
    if not instances:
        yield
        return
    before = [(each, each.__dict__.get(field.attname)) for each in instances]
    try:
        with transaction.atomic(using=using):
            give(field, instances, using, end)
            yield
    except BaseException:
        for instance, value in before:
            setattr(instance, field.attname, value)
        raise


def give(
    field: IdField,
    instances: Sequence[models.Model],
    using: str,
    end: Callable[[models.Model], str] = lambda instance: "",
) -> None:
    """Give gapless ids inside the caller's transaction; raises `HiLoError`."""
    if is_sharded(field.model):
        raise HiLoError(
            f"{field} gives no gapless ids: the rows of {field.model._meta.label} are "
            f"spread over shards, and each would count for itself."
        )
    ends = [end(instance) for instance in instances]
    collection = field.collection_name
    start = id_start(collection, check_separator(settings.SEPARATOR), "")
    numbers = next_gapless_numbers(collection, len(instances), using)
    for instance, number, last in zip(instances, numbers, ends, strict=True):
        field.give(instance, f"{start}{number}{last}", home_of(using))


def keep_clear_of(field: IdField, numbers: Sequence[int], using: str) -> None:
    """Let no coming gapless number be one of explicit ids inserted on ``using``."""
    if numbers:
        seed_gapless_number(field.collection_name, max(numbers), using)


def last_number(field: IdField, using: str) -> int:
    """Return the last gapless number of a field's collection, 0 before the first."""
    counters = GaplessCounter.objects.using(using)
    row = counters.filter(pk=field.collection_name.lower()).first()
    return row.last if row else 0
