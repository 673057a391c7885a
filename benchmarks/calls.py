"""The Python calls of a `create()` and of a request, in memory that has numbers.

Ours, Django's and the driver's; the same in each run on the same versions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from types import FrameType
from typing import Any

from django.db import connections, models, transaction

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread
from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager

FIELDS = {"text": HiLoField, "integer": HiLoBigAutoField}
# In a transaction SQLite's ranges are bound to it.
BLOCKS = {"": nullcontext, "_atomic": transaction.atomic}
LINES = 5
# After these requests ranges are long.
BEFORE = 40
TRIES = 5
# A range that is used up soon.
SMALL = 32


def measure(bench: Bench) -> Iterator[Finding]:
    """Count the calls for each kind of key, outside and inside a transaction."""
    for name, field in FIELDS.items():
        for mode, block in BLOCKS.items():
            order, line = tables(f"{name}{mode}", field)
            create = partial(_create, order)
            request = partial(_request, order, line)
            with block():
                for _ in range(BEFORE):
                    request()
                counts = {f"calls_create{mode}": fewest(create)}
                counts[f"calls_request{mode}"] = fewest(request)
            for key, count in counts.items():
                yield Result(key, f"{TITLES[SQLITE]}, {name}", Spread.of([count]))
        order, _ = tables(f"{name}_small", partial(field, max_capacity=SMALL))
        # One of them reserves the next range.
        count = max(_calls(partial(_create, order)) for _ in range(3 * SMALL))
        yield Result("calls_refill", f"{TITLES[SQLITE]}, {name}", Spread.of([count]))


def tables(name: str, key: Any) -> tuple[Any, Any]:
    """Make an order and its lines, each with one column of its own."""
    order = _model(f"Order_{name}", key)
    line = _model(f"Line_{name}", key, order=models.ForeignKey(order, models.CASCADE))
    with connections[SQLITE].schema_editor() as editor:
        editor.create_model(order)
        editor.create_model(line)
    return order, line


def _model(name: str, key: Any, **fields: Any) -> Any:
    meta = type("Meta", (), {"app_label": "shop"})
    fields |= {"id": key(primary_key=True), "note": models.CharField(max_length=20)}
    content = {"__module__": __name__, "Meta": meta, "objects": HiLoManager(), **fields}
    return type(name, (models.Model,), content)


def _create(order: Any) -> Any:
    return order.objects.create(note="chai")


def _request(order: Any, line: Any) -> None:
    made = order.objects.create(note="chai")
    line.objects.bulk_create([line(order=made, note="chai") for _ in range(LINES)])


def fewest(work: Callable[[], object]) -> int:
    """Return the calls of functions in Python, without those of a reservation."""
    return min(_calls(work) for _ in range(TRIES))


def _calls(work: Callable[[], object]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
