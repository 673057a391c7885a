"""EXPLAIN of lookups on a million anchored ids, with and without an index.

    python -m benchmarks.explain_lookups

On SQLite in a temporary file, and on the servers of ``HILO_TEST_POSTGRES`` and
``HILO_TEST_MARIADB`` (URLs), in databases of its own. The index is that of
docs/how-to/lookups.md, made by a migration after the rows are there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django
from django.conf import settings
from django.db import connections, migrations, models
from django.db.migrations.state import ProjectState
from django.db.models import F

from tests.support.databases import URL_VARIABLES, settings_for

DIGITS = 6
ANCHORS = 250_000
ANCHOR = "orders/33-A"
PARTS = ("anchor", "number")
WIDTH = 120


def main() -> int:
    """Measure, print, and return 1 where a plan leaves its index alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="of each query")
    parser.add_argument("--seconds", type=float, default=20.0, help="most for a query")
    options = parser.parse_args()
    servers = [name for name, url in URL_VARIABLES.items() if url in os.environ]
    configure(["sqlite", *servers])
    plans = [
        plan
        for alias in connections
        for plan in on_database(alias, options.rounds, options.seconds)
    ]
    return 0 if all(plans) else 1


def configure(databases: list[str]) -> None:
    """Let each database have an alias, the first one being the default."""
    names = ["default", *databases[1:]]
    settings.configure(
        DATABASES={
            alias: settings_for(database, "hilo_explain")
            for alias, database in zip(names, databases, strict=True)
        },
        INSTALLED_APPS=["django_hilo"],
        USE_TZ=True,
    )
    django.setup()


def on_database(alias: str, rounds: int, seconds: float) -> Iterator[bool]:
    """Print what one database does; yield whether each plan has its index."""
    with database(alias) as connection:
        print(f"\n== {connection.display_name} {version(connection)}")
        state = migrate(connection, ProjectState(), table())
        tell("rows", lambda: fill(connection))
        print("\n-- without an index")
        list(explained(connection, state, rounds, seconds))
        print("\n-- with the recipe's")
        made = list(recipes(connection))
        state = tell("made", lambda: migrate(connection, state, *made))
        yield from explained(connection, state, rounds, seconds)


def explained(
    connection: Any, state: ProjectState, rounds: int, seconds: float
) -> Iterator[bool]:
    """Print what is asked, how long it takes and why; yield whether by an index."""
    analyze(connection)
    invoice = state.apps.get_model("billing", "Invoice")
    invoices = invoice.objects.using(connection.alias)
    for part, (name, queryset) in zip(PARTS, queries(invoices).items(), strict=True):
        plan = queryset.explain()
        print(f"\n{name}: {milliseconds(queryset, rounds, seconds)}")
        print(shortened(plan))
        yield f"_{part}" in plan


def queries(invoices: Any) -> dict[str, models.QuerySet[Any]]:
    """Return what is asked, as one would write it."""
    return {
        f'anchored_to("{ANCHOR}")': invoices.anchored_to(ANCHOR),
        'order_by("id__number")[:50]': invoices.order_by("id__number")[:50],
    }


def table() -> Any:
    """Return the migration of a table as it is before it needs an index."""
    from django_hilo.fields import HiLoField
    from django_hilo.managers import HiLoManager

    fields = [
        ("id", HiLoField(primary_key=True, anchor="order_id")),
        ("order_id", models.CharField(max_length=64)),
    ]
    managers = [("objects", HiLoManager())]
    return migrations.CreateModel("Invoice", fields, managers=managers)


def recipes(connection: Any) -> Iterator[Any]:
    """Yield the migrations of docs/how-to/lookups.md that fit a database."""
    if connection.vendor != "mysql":
        for part in PARTS:
            index = models.Index(F(f"id__{part}"), name=f"by_{part}")
            yield migrations.AddIndex("Invoice", index)
        return
    for part, column in zip(
        PARTS, (models.CharField(max_length=128), models.BigIntegerField()), strict=True
    ):
        field = models.GeneratedField(
            expression=F(f"id__{part}"),
            output_field=column,
            db_persist=False,
            db_index=True,
        )
        yield migrations.AddField("Invoice", part, field)


def migrate(connection: Any, state: ProjectState, *operations: Any) -> ProjectState:
    """Apply migrations without recording them."""
    migration = migrations.Migration("benchmark", "billing")
    migration.operations = list(operations)
    with connection.schema_editor() as editor:
        return migration.apply(state, editor)


def fill(connection: Any) -> None:
    """Insert the rows by plain SQL."""
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    places = [f"({digits}) AS t{place}" for place in range(DIGITS)]
    number = " + ".join(f"t{place}.d * {10**place}" for place in range(DIGITS))
    order = f"CONCAT('orders/', n % {ANCHORS} + 1, '-A')"
    invoice = f"CONCAT('invoices/', n + 1, '-A$orders/', n % {ANCHORS} + 1, '-A')"
    if connection.vendor == "sqlite":
        order, invoice = (concatenated(text) for text in (order, invoice))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO billing_invoice (id, order_id) SELECT {invoice}, {order} "
            f"FROM (SELECT {number} AS n FROM {' CROSS JOIN '.join(places)}) AS numbers"
        )


def concatenated(call: str) -> str:
    # SQLite has CONCAT() from 3.44 on.
    inside = call.removeprefix("CONCAT(").removesuffix(")")
    return " || ".join(f"({part})" for part in inside.split(", "))


def analyze(connection: Any) -> None:
    """Let the planner know the table."""
    what = "ANALYZE TABLE" if connection.vendor == "mysql" else "ANALYZE"
    with connection.cursor() as cursor:
        cursor.execute(f"{what} billing_invoice")


def milliseconds(queryset: Any, rounds: int, seconds: float) -> str:
    """Ask some times, the first not counted; return median, least and most."""
    until = time.monotonic() + seconds
    taken: list[float] = []
    list(queryset.all())
    while not taken or (len(taken) < rounds and time.monotonic() < until):
        start = time.perf_counter()
        rows = len(queryset.all())
        taken.append((time.perf_counter() - start) * 1000)
    middle = statistics.median(taken)
    spread = f"{min(taken):.1f} to {max(taken):.1f}, {len(taken)} times"
    return f"{rows} rows in {middle:.1f} ms ({spread})"


def tell(what: str, do: Callable[[], Any]) -> Any:
    """Do something and print the seconds it took."""
    start = time.monotonic()
    result = do()
    print(f"{what}: {time.monotonic() - start:.1f} s")
    return result


def shortened(plan: str) -> str:
    lines = plan.split("\n")
    cut = (line if len(line) <= WIDTH else f"{line[:WIDTH]}..." for line in lines)
    return textwrap.indent("\n".join(cut), "    ")


def version(connection: Any) -> str:
    return ".".join(map(str, connection.get_database_version()))


@contextmanager
def database(alias: str) -> Iterator[Any]:
    """Make a database, and drop it at the end."""
    connection = connections[alias]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield connection
    finally:
        connection.creation.destroy_test_db("", verbosity=0)


if __name__ == "__main__":
    sys.exit(main())
