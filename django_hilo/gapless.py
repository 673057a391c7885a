"""Gapless numbers: one by one, in the caller's transaction (RavenDB's identities)."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import F, QuerySet

from django_hilo.exceptions import CounterExhausted
from django_hilo.identifiers import MAX_NUMBER, check_collection
from django_hilo.models import GaplessCounter


def next_gapless_number(collection: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Return the next gapless number of a collection on the database ``using``.

    The counter stays locked until the caller's transaction ends, and a rollback gives
    the number back: so there are no gaps, and one writer at a time. Numbers start at 1.
    Raises `InvalidDocumentId` and `CounterExhausted`.
    """
    collection = check_collection(collection).lower()
    counters = GaplessCounter.objects.using(using)
    mine = counters.filter(pk=collection)
    with transaction.atomic(using=using):
        # Written first: SQLite fails at once where a transaction reads before it.
        if not _increment(mine):
            row = GaplessCounter(collection=collection)
            counters.bulk_create([row], ignore_conflicts=True)
            if not _increment(mine):
                raise CounterExhausted(
                    f"The gapless numbers of {collection!r} on {using!r} have reached "
                    f"2^63-1. Lower GaplessCounter.last if it was set by mistake."
                )
        return mine.get().last


def _increment(mine: QuerySet[GaplessCounter]) -> int:
    return mine.filter(last__lt=MAX_NUMBER).update(last=F("last") + 1)
