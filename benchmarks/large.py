"""Large tables: moving their keys to HiLo ids, and looking into them by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import connections, migrations, models
from django.db.migrations.state import ProjectState
from django.db.models import F

from benchmarks.bench import Bench
from benchmarks.databases import MARIADB, TITLES
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread, seconds_of
from django_hilo._operations.highest_numbers import highest_number
from django_hilo.fields import HiLoField
from django_hilo.managers import HiLoManager
from django_hilo.models import HiLoDocument
from django_hilo.moving import MoveToHiLo

MOVED = 300_000
LOOKED_UP = 1_000_000
TABLES = ("large_item", "large_owner")
KEYS = [
    migrations.CreateModel(
        "Owner",
        [
            ("id", models.BigAutoField(primary_key=True)),
            ("name", models.CharField(max_length=50)),
        ],
    ),
    migrations.CreateModel(
        "Item",
        [
            ("id", models.BigAutoField(primary_key=True)),
            ("owner", models.ForeignKey("large.owner", models.CASCADE)),
        ],
    ),
]
MOVE = MoveToHiLo("owner", "id", HiLoField(primary_key=True))
IDS = [
    migrations.CreateModel(
        "Owner",
        [("id", HiLoField(primary_key=True))],
        managers=[("objects", HiLoManager())],
    ),
]


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare a move with copies of the moved tables, and time two lookups."""
    for alias in bench.aliases:
        rows = bench.scaled(MOVED, MOVED // 50)
        shares = [_move(alias, rows) for _ in range(bench.scaled(3, 1))]
        where = f"{TITLES[alias]}, {rows:,} rows"
        yield Result("move", where, Spread.of(shares))
    for alias in bench.aliases:
        # Which index a number has on MariaDB is on the page of lookups.
        if alias != MARIADB:
            yield from _lookups(alias, bench.scaled(LOOKED_UP, LOOKED_UP // 50))


def _move(alias: str, rows: int) -> float:
    """Move tables; return how many times the time of copying them it took."""
    with _tables(alias, KEYS) as (connection, state):
        _insert(connection, "large_owner (id, name)", "n, 'somebody'", rows)
        _insert(connection, "large_item (id, owner_id)", "n, n", rows)
        moved = seconds_of(partial(_migrate, connection, state, MOVE))
        return moved / seconds_of(partial(_copy, connection))


def _copy(connection: Any) -> None:
    copies = "copy_owner", "copy_item"
    with connection.cursor() as cursor:
        for copy, table in zip(copies, reversed(TABLES), strict=True):
            cursor.execute(f"CREATE TABLE {copy} AS SELECT * FROM {table}")
            cursor.execute(f"CREATE UNIQUE INDEX {copy}_key ON {copy} (id)")
        cursor.execute("CREATE INDEX copy_item_owner ON copy_item (owner_id)")
        for copy in copies:
            cursor.execute(f"DROP TABLE {copy}")


def _lookups(alias: str, rows: int) -> Iterator[Finding]:
    where = f"{TITLES[alias]}, {rows:,} rows"
    with _tables(alias, KEYS) as (connection, state):
        _insert(connection, "large_owner (id, name)", "n, 'somebody'", rows)
        owner: Any = state.apps.get_model("large", "Owner")
        owners = owner.objects.using(alias)
        for key, look in (
            ("highest_auto", lambda: owners.aggregate(models.Max("id"))),
            ("first_auto", lambda: list(owners.order_by("id")[:50])),
        ):
            yield Result(key, where, Spread.of(_milliseconds(look)))
    with _tables(alias, IDS) as (connection, state):
        start = "'owners/' || n || '-A'"
        if connection.vendor == "mysql":
            start = "CONCAT('owners/', n, '-A')"
        _insert(connection, "large_owner (id)", start, rows)
        index = models.Index(F("id__number"), name="large_by_number")
        made = _migrate(connection, state, migrations.AddIndex("Owner", index))
        owner = made.apps.get_model("large", "Owner")
        owners = owner.objects.using(alias)
        field = owner._meta.pk
        for key, look in (
            ("highest", partial(highest_number, field, alias, "A")),
            ("first_by_number", lambda: list(owners.order_by("id__number")[:50])),
        ):
            yield Result(key, where, Spread.of(_milliseconds(look)))


def _milliseconds(look: Callable[[], object]) -> list[float]:
    look()
    return [seconds_of(look) * 1e3 for _ in range(9)]


@contextmanager
def _tables(alias: str, operations: list[Any]) -> Iterator[tuple[Any, ProjectState]]:
    connection = connections[alias]
    try:
        yield connection, _migrate(connection, ProjectState(), *operations)
    finally:
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"DROP TABLE IF EXISTS {table}")
        HiLoDocument.objects.using(alias).filter(collection="owners").delete()


def _migrate(connection: Any, state: ProjectState, *operations: Any) -> ProjectState:
    migration = migrations.Migration("large", "large")
    migration.operations = list(operations)
    with connection.schema_editor(atomic=migration.atomic) as editor:
        return migration.apply(state.clone(), editor)


def _insert(connection: Any, into: str, values: str, rows: int) -> None:
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    places = range(len(str(rows - 1)))
    tables = " CROSS JOIN ".join(f"({digits}) AS t{place}" for place in places)
    number = " + ".join(f"t{place}.d * {10**place}" for place in places)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {into} SELECT {values} FROM "
            f"(SELECT {number} + 1 AS n FROM {tables}) AS numbers WHERE n <= {rows}"
        )
