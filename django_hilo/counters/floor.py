"""What Max must not be under: read it, raise it, and keep saves from lowering it."""

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections

from django_hilo._database.which_connection import note_own_lock
from django_hilo.counters.reservation import change_counter, checked, new_ticket
from django_hilo.exceptions import CounterNotUsed
from django_hilo.identifiers import check_number, counter_key

# Functions import it when they run: fields, and this with them, need no loaded apps.
if TYPE_CHECKING:
    from django_hilo.models import HiLoDocument


def raise_floor(
    collection: str,
    number: int,
    using: str = DEFAULT_DB_ALIAS,
    *,
    node_tag: str | None = None,
) -> int:
    """Raise floor and Max to at least ``number``, and return Max; neither ever falls.

    For a number that an existing id has and that no range gave. Raises as `reserve`.
    For the collection of an integer key without ``node_tag`` raises `CounterNotUsed`:
    use `django_hilo.generator.raise_floor`, which knows its counter.
    """
    for model in apps.get_models() if node_tag is None else ():
        key: Any = model._meta.pk
        name = key.collection_name if getattr(key, "is_integer", False) else ""
        if name.lower() == collection.lower():
            call = f"raise_floor({model._meta.label!r}, {number})"
            text = f"{name!r} is of integer keys: call {call} of django_hilo.generator."
            raise CounterNotUsed(text)
    collection, node_tag = checked(collection, node_tag, using)
    check_number(number)

    def lift(document: "HiLoDocument", prefix: str) -> dict[str, Any]:
        floor = max(document.floor, number)
        highest = max(document.max, floor)
        if (floor, highest) == (document.floor, document.max):
            return {}
        return {"floor": floor, "max": highest}

    return change_counter(collection, node_tag, using, lift)[0].max


def read_max(
    collection: str, using: str = DEFAULT_DB_ALIAS, *, node_tag: str | None = None
) -> int:
    """Return the higher of Max and floor, 0 if there is no row; takes no lock."""
    from django_hilo.models import HiLoDocument

    collection, node_tag = checked(collection, node_tag, using)
    rows = HiLoDocument.objects.using(using)
    row = rows.filter(pk=counter_key(collection, node_tag)).first()
    return max(row.max, row.floor) if row else 0


def guard_save(instance: Any, raw: bool, using: str, **kwargs: object) -> None:
    """Replace the ticket at a save, and let no fixture lower a counter (pre_save)."""
    if raw:
        instance.collection = instance.collection.lower()
        instance.id = counter_key(instance.collection, instance.node_tag)
        rows = type(instance).objects.using(using).filter(pk=instance.id)
        if connections[using].in_atomic_block:  # as in loaddata
            rows.update(ticket=new_ticket())  # locks the row on every database
            note_own_lock(connections[using])
        stored = rows.first()
        if stored is not None:
            instance.max = max(instance.max, stored.max)
            instance.floor = max(instance.floor, stored.floor)
    instance.ticket = new_ticket()
