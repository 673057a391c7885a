"""The counters of a run, by the keys that journals name them with."""

from functools import cache
from typing import Any

ORDERS, PLAIN = "orders/A", "plain-things/A"
PEOPLE, PLACES, LINES = "people/A", "places/A", "orderlines/A"
GAPLESS = "letters"


@cache
def items() -> str:
    """Return the key of the integer counter: PostgreSQL's is the column's sequence."""
    return f"{_items().source.key[0]}/"


def highest_item() -> int:
    """Return the highest number that anybody may hold."""
    target = _items()
    number: int = target.source.read_max(target.using)
    return number


def counter_of(model: str) -> str | None:
    """Return the counter of a model, None where it has gapless ids."""
    if model == "Item":
        return items()
    return _COUNTERS.get(model)


_COUNTERS = {
    **{"Order": ORDERS, "OrderLine": LINES, "Plain": PLAIN},
    **{"Person": PEOPLE, "Restaurant": PLACES},
}


def number_of(id: str) -> int:
    """Return the number in an id of a run."""
    return int(id.rpartition("/")[2].removesuffix("-A"))


def _items() -> Any:
    from django_hilo._allocation.find import resolve
    from tests.apps.numbers.models import Item

    return resolve(Item, "default")
