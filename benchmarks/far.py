"""The same on a server that is 1 ms away, where round trips count."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connections

from benchmarks import graph, reservations, saves
from benchmarks.bench import Bench
from benchmarks.databases import FAR, FAR_TITLE, POSTGRES, reached_by
from benchmarks.proxy import in_process
from benchmarks.results import Finding, Skipped
from django_hilo.generator import return_ranges

AWAY = 0.001


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare reservations, rows and graphs over a proxy."""
    if not bench.has(POSTGRES):
        yield Skipped("a database 1 ms away: set HILO_TEST_POSTGRES.")
        return
    server = connections[POSTGRES].settings_dict
    port = int(server["PORT"] or 5432)
    with (
        in_process(server["HOST"], port, AWAY) as through,
        reached_by("127.0.0.1", through),
    ):
        try:
            yield from reservations.durations(bench, FAR, FAR_TITLE)
            figures = saves.timed(
                FAR, False, bench.scaled(100, 5), bench.seconds(20), bench.seed
            )
            yield from saves.found(figures, f"{FAR_TITLE}, autocommit")
            yield from graph.compared(bench, FAR, FAR_TITLE)
        finally:
            return_ranges(FAR)
