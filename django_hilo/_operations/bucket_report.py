"""How full buckets are: the rows of models whose ids have something to do with them."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from heapq import nlargest
from typing import Any, NamedTuple

from django.apps import apps
from django.db import models

from django_hilo.fields import BucketField, HiLoField
from django_hilo.sharding.buckets import BUCKETS, bucket_of, deciding_part

_CHUNK = 10_000


class Bucket(NamedTuple):
    """The rows of one table in one bucket, and what put one of them there."""

    number: int
    rows: int
    # An anchor, or the id of a row without one.
    text: str


class Size(NamedTuple):
    """The rows of a model on a database, and its fullest buckets, the fullest first."""

    rows: int
    buckets: int
    largest: list[Bucket]


def keys_with_buckets() -> Iterator[HiLoField]:
    """Yield the keys that are anchored or have a BucketField.

    A child of multi-table inheritance goes with its parent.
    """
    for model in apps.get_models():
        if not model._meta.proxy:
            for field in model._meta.local_fields:
                if not isinstance(field, HiLoField) or not field.is_key:
                    continue
                if field.anchor is not None or _column_of(field):
                    yield field


def measure(field: HiLoField, using: str, largest: int) -> Size:
    """Count the rows of a key's table in each bucket, and name the ``largest`` ones.

    Where a BucketField of the key stores them the database counts, else all ids are
    read.
    """
    rows = field.model._base_manager.using(using).order_by()
    column = _column_of(field)
    if column is not None:
        return _measure_column(rows, column.name, field.name, largest)
    return _measure_ids(rows, field.name, largest)


def _column_of(field: HiLoField) -> BucketField | None:
    for other in field.model._meta.local_fields:
        if isinstance(other, BucketField) and other.source == field.name:
            return other
    return None


def _measure_column(rows: Any, column: str, key: str, largest: int) -> Size:
    filled = rows.exclude(**{column: None}).values_list(column)
    counts = filled.annotate(hilo_rows=models.Count("*"), hilo_id=models.Min(key))
    buckets = [
        Bucket(number, count, deciding_part(id))
        for number, count, id in counts.order_by("-hilo_rows", column)[:largest]
    ]
    return Size(rows.count(), filled.distinct().count(), buckets)


def _measure_ids(rows: Any, key: str, largest: int) -> Size:
    counts = array("Q", bytes(8 * BUCKETS))
    for id in _ids(rows, key):
        counts[bucket_of(id)] += 1
    used = [number for number, count in enumerate(counts) if count]
    most = nlargest(largest, used, key=counts.__getitem__)
    texts = _texts(_ids(rows, key), most)
    buckets = [Bucket(number, counts[number], texts[number]) for number in most]
    return Size(sum(counts), len(used), buckets)


def _texts(ids: Iterator[str], numbers: Collection[int]) -> dict[int, str]:
    found = dict.fromkeys(numbers, "")  # the rows may be gone by now
    missing = set(numbers)
    for id in ids:
        if not missing:
            break
        number = bucket_of(id)
        if number in missing:
            missing.remove(number)
            found[number] = deciding_part(id)
    return found


def _ids(rows: Any, key: str) -> Iterator[str]:
    return map(str, rows.values_list(key, flat=True).iterator(chunk_size=_CHUNK))
