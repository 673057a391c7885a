"""The same on servers that are 1 ms away, where round trips count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.db import connections

from benchmarks import graph, reservations
from benchmarks.bench import Bench
from benchmarks.databases import FAR, MARIADB, MYSQL, POSTGRES, TITLES, reached_by
from benchmarks.proxy import in_process
from benchmarks.results import Finding, Result, Skipped
from django_hilo.generator import return_ranges

AWAY = 0.001
PORTS = {POSTGRES: 5432, MARIADB: 3306, MYSQL: 3306}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare reservations and graphs over a proxy."""
    for alias, port in PORTS.items():
        if not bench.has(alias):
            yield Skipped(f"{TITLES[alias]} 1 ms away: it is not there.")
            continue
        server = connections[alias].settings_dict
        with (
            in_process(server["HOST"], int(server["PORT"] or port), AWAY) as through,
            reached_by(alias, "127.0.0.1", through),
        ):
            try:
                yield from compared(bench, TITLES[alias])
            finally:
                return_ranges(FAR)


def compared(bench: Bench, where: str) -> Iterator[Finding]:
    """Compare on the database that is far away; its results have goals of their own."""
    for found in (
        *reservations.durations(bench, FAR, where),
        *graph.both(bench, FAR, where),
    ):
        if isinstance(found, Result):
            yield replace(found, key=f"{found.key}_far")
