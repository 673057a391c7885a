from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_hilo.fields import GaplessIdField
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


Groups = list[tuple[Figures, Sequence[models.Model]]]


def load(graph: Graph, using: str, advance: Advance) -> list[Figures]:
    """Assign ids, then insert all objects in one transaction."""
    groups: Groups = [
        (Figures(model, len(objects)), objects) for model, objects in graph.by_model()
    ]
    _give_ids(groups, using)
    with transaction.atomic(using=using):
        _insert(groups, using, advance)
    for figures, objects in groups:
        figures.first_id, figures.last_id = str(objects[0].pk), str(objects[-1].pk)
    return [figures for figures, _ in groups]


def _give_ids(groups: Groups, using: str) -> None:
    # Outside the transaction: on SQLite its rollback would take the ranges back.
    for figures, objects in groups:
        _refer_by_id(objects)
        # Gapless ids come with the insert: a rollback takes them back.
        if not isinstance(figures.model._meta.pk, GaplessIdField):
            with _measured(figures, using):
                _manager(figures).using(using).assign_ids(objects)


def _insert(groups: Groups, using: str, advance: Advance) -> None:
    for figures, objects in groups:
        for batch in _batches(objects):
            with _measured(figures, using):
                _manager(figures).using(using).bulk_create(batch)
            advance(str(figures.model._meta.verbose_name_plural), len(batch))


def _refer_by_id(objects: Sequence[models.Model]) -> None:
    """Set the foreign keys, whose objects have their ids by now.

    Left to bulk_create(), Django would compare databases: it takes an object that is
    not saved for one of the default database.
    """
    for field in objects[0]._meta.concrete_fields:
        if isinstance(field, models.ForeignKey):
            for instance in objects:
                setattr(instance, field.attname, getattr(instance, field.name).pk)


def _manager(figures: Figures) -> Any:
    return figures.model._default_manager


def _batches(objects: Sequence[models.Model]) -> Iterator[Sequence[models.Model]]:
    for start in range(0, len(objects), BATCH):
        yield objects[start : start + BATCH]


@contextmanager
def _measured(figures: Figures, using: str) -> Iterator[None]:
    """Count the statements, the reservations and the time."""

    def count(execute: Any, *arguments: Any) -> Any:
        figures.statements += 1
        return execute(*arguments)

    def note(**kwargs: Any) -> None:
        figures.reservations += 1

    def watch(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
        # On MariaDB a range is reserved on a connection of its own.
        if connection not in watched:
            watched.append(connection)
            stack.enter_context(connection.execute_wrapper(count))

    watched: list[BaseDatabaseWrapper] = []
    started = perf_counter()
    with ExitStack() as stack:
        watch(connections[using])
        for signal, receiver in ((connection_created, watch), (range_reserved, note)):
            signal.connect(receiver)
            stack.callback(signal.disconnect, receiver)
        yield
    figures.seconds += perf_counter() - started
