from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from django.db import connections, models, transaction

from django_hilo.signals import range_reserved
from example_project.shop.graph import Graph

# So many rows that the progress bar moves and few enough statements are sent.
BATCH = 500

Advance = Callable[[str, int], None]


@dataclass
class Figures:
    """What the rows of one model cost."""

    model: type[models.Model]
    rows: int
    first_id: str = ""
    last_id: str = ""
    statements: int = 0
    reservations: int = 0
    seconds: float = 0.0


def load(graph: Graph, using: str, advance: Advance) -> list[Figures]:
    """Give ids to all objects, then insert them, in one transaction."""
    groups = [
        (objects, Figures(model, len(objects))) for model, objects in graph.by_model()
    ]
    # Outside the transaction: on SQLite its rollback would take the ranges back.
    for objects, figures in groups:
        with _measured(figures, using):
            _manager(figures).using(using).assign_ids(objects)
        figures.first_id, figures.last_id = str(objects[0].pk), str(objects[-1].pk)
    with transaction.atomic(using=using):
        for objects, figures in groups:
            for batch in _batches(objects):
                with _measured(figures, using):
                    _manager(figures).using(using).bulk_create(batch)
                advance(str(figures.model._meta.verbose_name_plural), len(batch))
    return [figures for _, figures in groups]


def _manager(figures: Figures) -> Any:
    return figures.model._default_manager


def _batches(objects: Sequence[models.Model]) -> Iterator[Sequence[models.Model]]:
    for start in range(0, len(objects), BATCH):
        yield objects[start : start + BATCH]


@contextmanager
def _measured(figures: Figures, using: str) -> Iterator[None]:
    """Count the statements on a connection, the reservations and the time."""

    def count(execute: Any, *arguments: Any) -> Any:
        figures.statements += 1
        return execute(*arguments)

    def note(**kwargs: Any) -> None:
        figures.reservations += 1

    range_reserved.connect(note)
    started = perf_counter()
    try:
        with connections[using].execute_wrapper(count):
            yield
    finally:
        figures.seconds += perf_counter() - started
        range_reserved.disconnect(note)
