"""What the database holds after a run."""

from dataclasses import dataclass

from tests.long.torture.counters import highest_item, items
from tests.long.torture.evidence import Row
from tests.long.torture.operations import TAKEN


@dataclass
class Stored:
    """Rows, and counters by their keys."""

    rows: list[Row]
    max: dict[str, int]
    gapless: dict[str, int]


def stored() -> Stored:
    """Read it."""
    from django.db import connection

    from django_hilo.models import GaplessCounter, HiLoDocument
    from tests.apps.numbers.models import Item
    from tests.apps.records.models import Letter, Order, Person, Plain, Restaurant

    people = Person.objects.exclude(email=TAKEN)
    rows = [
        (queryset.model.__name__, str(pk), name)
        for queryset, column in (
            *((model.objects, "name") for model in (Order, Item, Plain, Letter)),  # type: ignore[attr-defined]
            *((Restaurant.objects, "name"), (people, "email")),
        )
        for pk, name in queryset.values_list("pk", column)
    ]
    counters = HiLoDocument.objects.values_list("pk", "max")
    gapless = GaplessCounter.objects.values_list("pk", "last")
    highest = {**dict(counters), items(): highest_item()}
    found = Stored(rows, highest, dict(gapless))
    connection.close()
    return found
