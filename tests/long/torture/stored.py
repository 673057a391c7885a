"""What the database holds after a run."""

from dataclasses import dataclass
from typing import Any

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
    from tests.apps.records.models import (
        Letter,
        Order,
        OrderLine,
        Person,
        Plain,
        Restaurant,
    )
    from tests.apps.series.models import Receipt

    columns: dict[Any, str] = {
        **dict.fromkeys((Order, Item, Plain, Letter, Receipt, Restaurant), "name"),
        # A line has the name of its order, and must follow it.
        **{OrderLine: "order__name", Person: "email"},
    }
    rows = [
        (model.__name__, str(pk), name)
        for model, column in columns.items()
        for pk, name in model.objects.values_list("pk", column)
        if name != TAKEN
    ]
    counters = HiLoDocument.objects.values_list("pk", "max")
    gapless = GaplessCounter.objects.values_list("pk", "last")
    highest = {**dict(counters), items(): highest_item()}
    found = Stored(rows, highest, dict(gapless))
    connection.close()
    return found
