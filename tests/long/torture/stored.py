"""What the database holds after a run."""

from dataclasses import dataclass

from tests.long.torture.counters import highest_item, items
from tests.long.torture.evidence import Row


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
    from tests.apps.records.models import Letter, Order, Plain

    rows = [
        (model.__name__, str(pk), name)
        for model in (Order, Item, Plain, Letter)
        for pk, name in model.objects.values_list("pk", "name")  # type: ignore[attr-defined]
    ]
    counters = HiLoDocument.objects.values_list("pk", "max")
    gapless = GaplessCounter.objects.values_list("pk", "last")
    highest = {**dict(counters), items(): highest_item()}
    found = Stored(rows, highest, dict(gapless))
    connection.close()
    return found
