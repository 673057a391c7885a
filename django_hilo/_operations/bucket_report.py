"""Count the rows of models by the buckets of their ids; needs the package xxhash."""

from array import array
from collections.abc import Collection, Iterable, Iterator
from heapq import nlargest
from typing import Any

from django.db import models

from django_hilo._allocation.registry import counter_fields
from django_hilo._operations.locations import may_have_table
from django_hilo._operations.report import Row
from django_hilo.fields import BucketField, HiLoField
from django_hilo.sharding.buckets import BUCKETS, bucket_of, deciding_part

_CHUNK = 10_000
# Of the fullest buckets of a model on a database.
_LARGEST = 5


def buckets(databases: Iterable[str], oversized: int) -> Iterator[Row]:
    """Yield the models whose ids have to do with buckets, each with its fullest ones.

    These are models with an anchored key or a BucketField of it; a child of multi-table
    inheritance goes with its parent. A bucket of over ``oversized`` rows is marked.
    """
    for field in counter_fields():
        if not (isinstance(field, HiLoField) and field.ids and field.ids.is_key):
            continue
        if field.anchor is None and not _column_of(field):
            continue
        found = [
            {"database": alias, **measure(field, alias, _LARGEST)}
            for alias in databases
            if may_have_table(alias, field.model)
        ]
        for bucket in (each for row in found for each in row["largest"]):
            bucket["oversized"] = bucket["rows"] > oversized
        yield {
            "model": field.model._meta.label,
            "rows": sum(row["rows"] for row in found),
            "databases": found,
        }


def measure(field: HiLoField, using: str, largest: int) -> Row:
    """Count the rows of a key's table in each bucket, and name the ``largest`` ones.

    If a BucketField of the key stores them the database counts; else all ids are read.
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


def _measure_column(rows: Any, column: str, key: str, largest: int) -> Row:
    filled = rows.exclude(**{column: None}).values_list(column)
    counts = filled.annotate(hilo_rows=models.Count("*"), hilo_id=models.Min(key))
    buckets = [
        _bucket(number, count, deciding_part(id))
        for number, count, id in counts.order_by("-hilo_rows", column)[:largest]
    ]
    used = filled.distinct().count()
    return {"rows": rows.count(), "buckets": used, "largest": buckets}


def _measure_ids(rows: Any, key: str, largest: int) -> Row:
    counts = array("Q", bytes(8 * BUCKETS))
    for id in _ids(rows, key):
        counts[bucket_of(id)] += 1
    used = [number for number, count in enumerate(counts) if count]
    most = nlargest(largest, used, key=counts.__getitem__)
    texts = _texts(_ids(rows, key), most)
    buckets = [_bucket(number, counts[number], texts[number]) for number in most]
    return {"rows": sum(counts), "buckets": len(used), "largest": buckets}


def _bucket(number: int, rows: int, text: str) -> Row:
    # The text that puts rows there: an anchor, or the id of a row without one.
    return {"bucket": number, "rows": rows, "text": text}


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
