from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_hilo.signals import range_reserved
from example_project.shop.graph import Graph
from example_project.shop.shards import parts_of

# So many rows that the progress bar moves and few enough statements are sent.
BATCH = 500

Advance = Callable[[str, int], None]


class PartlyLoadedError(Exception):
    """Some shards have committed their parts, and then another one has failed."""

    def __init__(self, error: DatabaseError, committed: Sequence[str]) -> None:
        remedy = ", ".join(f"manage.py flush --database={alias}" for alias in committed)
        super().__init__(
            f"{error}\nBut {' and '.join(committed)} had committed before. Empty what "
            f"has only a part: {remedy}"
        )


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
    """Give ids to all objects, then insert them, in one transaction."""
    groups = _groups(graph)
    _give_ids(groups, using)
    with transaction.atomic(using=using):
        _insert(groups, using, advance)
    return [figures for figures, _ in groups]


def load_over_shards(graph: Graph, advance: Advance) -> dict[str, list[Figures]]:
    """Give ids to all objects, then insert each on its shard, or on all shards.

    Returns the figures by database; those of the default one are of the ids. There is a
    transaction for each shard: what one refuses, no other keeps. But they commit one by
    one: raises `PartlyLoadedError` where one fails after another's commit.
    """
    groups = _groups(graph)
    _give_ids(groups, DEFAULT_DB_ALIAS)
    parts = {alias: _groups(part) for alias, part in parts_of(graph).items()}
    committed: list[str] = []
    try:
        with ExitStack() as stack:
            for alias in parts:
                stack.enter_context(transaction.atomic(using=alias))
                transaction.on_commit(partial(committed.append, alias), using=alias)
            for alias, part in parts.items():
                _insert(part, alias, advance)
    except DatabaseError as error:
        if committed:
            raise PartlyLoadedError(error, committed) from error
        raise
    return {
        alias: [figures for figures, _ in part]
        for alias, part in {DEFAULT_DB_ALIAS: groups, **parts}.items()
    }


def _groups(graph: Graph) -> Groups:
    return [
        (Figures(model, len(objects), *_ends(objects)), objects)
        for model, objects in graph.by_model()
    ]


def _ends(objects: Sequence[models.Model]) -> tuple[str, str]:
    return str(objects[0].pk), str(objects[-1].pk)


def _give_ids(groups: Groups, using: str) -> None:
    # Outside the transaction: on SQLite its rollback would take the ranges back.
    for figures, objects in groups:
        _refer_by_id(objects)
        with _measured(figures, using):
            _manager(figures).using(using).assign_ids(objects)
        figures.first_id, figures.last_id = _ends(objects)


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
