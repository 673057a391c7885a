"""Take a gapless number, or set the last one, for a user."""

from typing import Any

from django.db import transaction

from django_hilo.counters import gapless
from django_hilo.models import GaplessCounter
from django_hilo.signals import Change, send_counter_changed


def take_gapless(collection: str, *, using: str, user: Any) -> int:
    """Take a gapless number, as `next_gapless_number`."""
    number = gapless.next_gapless_number(collection, using)
    row = GaplessCounter(collection=collection.lower())
    send_counter_changed(row, using, Change.TAKEN, number - 1, number, user)
    return number


def seed_gapless(
    collection: str, value: int, *, using: str, user: Any, force: bool = False
) -> tuple[int, int]:
    """Set the last gapless number of a collection, as `seed_gapless_number`.

    Returns the number before and after; sends no signal if they are the same.
    """
    with transaction.atomic(using=using):
        # Seeding with 0 makes the row or locks it, and returns its number.
        old = gapless.seed_gapless_number(collection, 0, using)
        new = gapless.seed_gapless_number(collection, value, using, force=force)
    if new != old:
        change = Change.RAISED if new > old else Change.LOWERED
        row = GaplessCounter(collection=collection.lower())
        send_counter_changed(row, using, change, old, new, user)
    return old, new
