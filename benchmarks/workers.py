"""The first ids of four processes that create objects in turn, as people see them."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from django.db import connections

from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.keys import MODELS, UUID7, creator
from benchmarks.processes import FORK, PATIENCE
from benchmarks.results import Finding, Seen
from django_hilo.models import HiLoDocument

WORKERS = 4
# Of each.
OBJECTS = 2


def measure(bench: Bench) -> Iterator[Finding]:
    """Create objects of each kind of key, whose counters have to be new."""
    using = bench.server
    ids = {
        name: [told(name, id) for id in created(order, using)]
        for name, (order, _) in MODELS.items()
    }
    title = f"ids in the order of their creation, {TITLES[using]}"
    yield Seen("workers", title, ids)
    empty(using, *(order for order, _ in MODELS.values()))
    HiLoDocument.objects.using(using).all().delete()


def told(name: str, id: object) -> str:
    """Return an id as a reader of the page sees it; no uuid comes again."""
    return f"a uuid of {len(str(id))} characters" if name == UUID7 else str(id)


def created(model: Any, using: str) -> list[object]:
    """Let processes create in turn; return the ids in that order."""
    connections.close_all()
    pipes, children = [], []
    for _ in range(WORKERS):
        here, there = FORK.Pipe()
        child = FORK.Process(target=_work, args=(model, using, there))
        child.start()
        there.close()
        pipes.append(here)
        children.append(child)
    ids = []
    for _ in range(OBJECTS):
        for pipe in pipes:
            pipe.send(True)
            ids.append(pipe.recv())
    for pipe, child in zip(pipes, children, strict=True):
        pipe.send(False)
        child.join(PATIENCE)
    return ids


def _work(model: Any, using: str, pipe: Connection) -> None:
    create = creator(model, using)
    while pipe.recv():
        pipe.send(create(name="chai").pk)
    connections.close_all()
