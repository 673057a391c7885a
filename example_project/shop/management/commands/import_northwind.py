from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from rich.console import Console

from django_hilo.exceptions import HiLoError
from example_project.shop.graph import Graph, graph_of
from example_project.shop.loading import PartlyLoadedError, load, load_over_shards
from example_project.shop.northwind import Northwind, WrongFilesError, read
from example_project.shop.present import has_tables, rows_present
from example_project.shop.report import console_for, print_figures, progress_bar
from example_project.shop.shards import rows_over_shards, shards


class Command(BaseCommand):
    help = (
        "Imports Northwind from customers.csv, products.csv, orders.csv and "
        "order-details.csv: all of it or, where a row is wrong, nothing. Rows that are "
        "in the database already are never changed: a second import is refused. Over "
        "shards the orders that were shipped get invoices too, as from demo elsewhere."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder of the CSV files")
        parser.add_argument(
            "--database",
            choices=list(connections),
            help="the alias of the database to import into (default: default, or all "
            "shards, where there are some)",
        )

    def handle(
        self, *args: Any, folder: Path, database: str | None, **options: Any
    ) -> None:
        if database and shards():
            raise CommandError(
                f"The id of an order says which shard it goes to: leave out "
                f"--database={database}."
            )
        databases = shards() or [database or DEFAULT_DB_ALIAS]
        for alias in databases:
            self._require_tables(alias)
        try:
            northwind = read(folder)
        except WrongFilesError as error:
            raise CommandError(f"{error}\nNothing was imported.") from error
        for alias in databases:
            self._require_none_of(northwind, alias)
        graph = graph_of(northwind)
        console = console_for(self.stdout, options)
        try:
            if shards():
                self._load_over_shards(console, graph)
            else:
                self._load(console, graph, databases[0])
        except PartlyLoadedError as error:
            raise CommandError(str(error)) from error
        except (DatabaseError, HiLoError) as error:
            raise CommandError(f"{error}\nNothing was imported.") from error

    def _require_tables(self, alias: str) -> None:
        if not has_tables(alias):
            raise CommandError(
                f"The database {alias!r} has no tables of the shop. Run: "
                f"python manage.py migrate --database={alias}"
            )

    def _require_none_of(self, northwind: Northwind, alias: str) -> None:
        present = rows_present(northwind, alias)
        if present:
            others = f" and {len(present) - 1} more rows" if len(present) > 1 else ""
            raise CommandError(
                f"In the database {alias!r} already: {present[0]}{others} of these "
                f"files. Nothing was imported."
            )

    def _load(self, console: Console, graph: Graph, using: str) -> None:
        with progress_bar(console, len(graph)) as advance:
            figures = load(graph, using, advance)
        print_figures(console, "Northwind", figures)

    def _load_over_shards(self, console: Console, graph: Graph) -> None:
        graph.add_invoices()
        with progress_bar(console, rows_over_shards(graph)) as advance:
            loaded = load_over_shards(graph, advance)
        print_figures(console, "Northwind's ids", loaded.pop(DEFAULT_DB_ALIAS))
        for alias, figures in loaded.items():
            print_figures(console, f"Northwind on {alias}", figures)
