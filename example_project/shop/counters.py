from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import F

from django_hilo._allocation.registry import fields_of
from django_hilo._operations.edit_counter import counter_of, id_at
from django_hilo._operations.locations import gapless_fields_of
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter, HiLoDocument


@dataclass
class Counter:
    """A counter as the front page shows it."""

    row: HiLoDocument
    collection: str
    models: str
    newest: str
    next_id: str


def counters() -> Iterator[Counter]:
    """Yield the counters with what people want to know of them."""
    for row in HiLoDocument.objects.annotate(newest_high=F("low") + F("size") - 1):
        names = [str(f.model._meta.verbose_name) for f in fields_of(row.collection)]
        yield Counter(
            row,
            counter_of(row).collection,
            ", ".join(names),
            f"{row.low:,} to {row.newest_high:,}" if row.size else "",
            id_at(row, row.next_low) if row.next_low <= MAX_NUMBER else "",
        )


def gapless_counters() -> Iterator[tuple[str, int]]:
    """Yield the collections of gapless ids, each with its last number."""
    for row in GaplessCounter.objects.all():
        fields = gapless_fields_of(row.collection)
        yield fields[0].collection_name if fields else row.collection, row.last
