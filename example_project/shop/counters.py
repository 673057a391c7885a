from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import F

from django_hilo._allocation.target import fields_of
from django_hilo._operations.edit_counter import id_at
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument


@dataclass
class Counter:
    """A counter as the front page shows it."""

    row: HiLoDocument
    models: str
    newest: str
    next_id: str


def counters() -> Iterator[Counter]:
    """Yield the counters with what people want to know of them."""
    for row in HiLoDocument.objects.annotate(newest_high=F("low") + F("size") - 1):
        names = [str(f.model._meta.verbose_name) for f in fields_of(row.collection)]
        yield Counter(
            row,
            ", ".join(names),
            f"{row.low} to {row.newest_high}" if row.size else "",
            id_at(row, row.next_low) if row.next_low <= MAX_NUMBER else "",
        )
