"""Many rows at once, as docs/how-to/load-many-rows.md has them, beside `bulk_create()`.

``LOAD DATA`` is measured where the server allows it (``local_infile``).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from tempfile import NamedTemporaryFile
from time import perf_counter
from typing import Any

from django.db import connections, transaction

from benchmarks.bench import Bench
from benchmarks.databases import MARIADB, MYSQL, POSTGRES, TITLES, empty
from benchmarks.results import Finding, compared
from benchmarks.rounds import PROCESSOR, interleaved, seconds_of
from benchmarks.shop.models import AutoOrder, Order

ROWS = 50_000
NAMES = ("id", "name", "quantity")
CREATED, OF_ROWS, OF_OBJECTS, OF_FILE = "bulk_create()", "rows", "objects", "file"
# Of the program, and of whoever waits for it.
CLOCKS = {"": PROCESSOR, "_wall": perf_counter}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on each database."""
    rows = [("chai", number) for number in range(bench.scaled(ROWS, ROWS // 10))]
    for alias in bench.aliases:
        ways: dict[str, Callable[..., None]] = {
            CREATED: _create,
            OF_ROWS: _insert_rows,
            OF_OBJECTS: _insert_objects,
        }
        if _may_load_files(alias):
            ways[OF_FILE] = _load_file
        for name, clock in CLOCKS.items():
            turns = {way: partial(_turn, ways[way], alias, rows, clock) for way in ways}
            figures = interleaved(
                turns, bench.scaled(7, 3), bench.seconds(60), bench.seed
            )
            pairs = {
                f"load_{way}{name}": (CREATED, way) for way in ways if way != CREATED
            }
            yield from compared(figures, pairs, TITLES[alias], "ms")
        empty(alias, Order, AutoOrder)


def _may_load_files(alias: str) -> bool:
    """Whether the server takes files of its clients; ask for it on our side."""
    if alias not in (MARIADB, MYSQL):
        return False
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@local_infile")
        may = bool(cursor.fetchone()[0])
    connection.settings_dict["OPTIONS"]["local_infile"] = True
    connection.close()
    return may


def _turn(
    way: Callable[[str, Any], None], alias: str, rows: Any, clock: Callable[[], float]
) -> float:
    empty(alias, Order, AutoOrder)
    return seconds_of(partial(way, alias, rows), clock)


def _create(alias: str, rows: Any) -> None:
    objects = [AutoOrder(name=name, quantity=quantity) for name, quantity in rows]
    AutoOrder.objects.using(alias).bulk_create(objects)


def _insert_rows(alias: str, rows: Any) -> None:
    ids = Order.objects.using(alias).next_ids(len(rows))
    _insert(alias, ((id, *row) for id, row in zip(ids, rows, strict=True)))


def _insert_objects(alias: str, rows: Any) -> None:
    objects = [Order(name=name, quantity=quantity) for name, quantity in rows]
    Order.objects.using(alias).assign_ids(objects)
    _insert(alias, map(attrgetter(*NAMES), objects))


def _insert(alias: str, rows: Iterable[Any]) -> None:
    table, names = Order._meta.db_table, ", ".join(NAMES)
    with transaction.atomic(alias), connections[alias].cursor() as cursor:
        if alias != POSTGRES:
            marks = ", ".join(["%s"] * len(NAMES))
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
            return
        with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def _load_file(alias: str, rows: Any) -> None:
    ids = Order.objects.using(alias).next_ids(len(rows))
    table, names = Order._meta.db_table, ", ".join(NAMES)
    with NamedTemporaryFile("w", suffix=".tsv") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerows((id, *row) for id, row in zip(ids, rows, strict=True))
        file.flush()
        with connections[alias].cursor() as cursor:
            cursor.execute(
                f"LOAD DATA LOCAL INFILE %s INTO TABLE {table} ({names})", [file.name]
            )
