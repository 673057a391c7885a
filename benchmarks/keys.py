"""The keys that are compared, and how a program takes many of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import uuid_utils.compat
from django.db import connections
from sequences import get_next_values

from benchmarks.results import Result, compared
from benchmarks.rounds import Figures
from benchmarks.shop.models import (
    AutoLine,
    AutoOrder,
    Line,
    NumberLine,
    NumberOrder,
    Order,
    SequencesLine,
    SequencesOrder,
    Uuid7Line,
    Uuid7Order,
)

HILO, INTEGER, AUTO = "HiLoField", "HiLoBigAutoField", "BigAutoField"
UUID7, SEQUENCES = "UUIDField, uuid7", "django-sequences"
MODELS = {
    HILO: (Order, Line),
    INTEGER: (NumberOrder, NumberLine),
    AUTO: (AutoOrder, AutoLine),
    UUID7: (Uuid7Order, Uuid7Line),
    SEQUENCES: (SequencesOrder, SequencesLine),
}
# By the ends of the names of goals.
OURS = {"_text": HILO, "_integer": INTEGER}
RIVALS = {"": AUTO, "_uuid7": UUID7, "_sequences": SEQUENCES}


def beside_each(
    task: str,
    figures: Figures,
    where: str,
    unit: str,
    clock: str = "",
    rivals: Mapping[str, str] = RIVALS,
) -> Iterator[Result]:
    """Yield the ratio of each other key to both of ours."""
    pairs = {
        f"{task}{key}{end}{clock}": (rival, ours)
        for key, ours in OURS.items()
        for end, rival in rivals.items()
    }
    yield from compared(figures, pairs, where, unit)


def creator(model: Any, using: str) -> Callable[..., Any]:
    """Return what saves one new object, as users of the key write it."""
    if hasattr(model, "create"):
        return partial(model.create, using)
    return partial(model.objects.using(using).create)


def new_keys(model: Any, using: str, count: int) -> Sequence[Any]:
    """Take keys before the rows are inserted, in as few queries as can be."""
    if hasattr(model.objects, "next_ids"):
        return list(model.objects.using(using).next_ids(count))
    if issubclass(model, SequencesOrder | SequencesLine):
        return get_next_values(count, model._meta.db_table, using=using)
    if issubclass(model, AutoOrder | AutoLine):
        return from_sequence(model, using, count)
    return [uuid_utils.compat.uuid7() for _ in range(count)]


def from_sequence(model: Any, using: str, count: int) -> Sequence[int]:
    """Take the next values of a `BigAutoField` on PostgreSQL, in one query."""
    with connections[using].cursor() as cursor:
        # By its name: pg_get_serial_sequence() would be called for each row.
        cursor.execute(
            "SELECT nextval(CAST(%s AS regclass)) FROM generate_series(1, %s)",
            [f"{model._meta.db_table}_id_seq", count],
        )
        return [number for (number,) in cursor.fetchall()]
