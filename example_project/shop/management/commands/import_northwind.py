from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from django_hilo.exceptions import HiLoError
from example_project.shop.graph import graph_of
from example_project.shop.loading import load
from example_project.shop.northwind import Northwind, WrongFilesError, read
from example_project.shop.present import has_tables, rows_present
from example_project.shop.report import console_for, print_figures, progress_bar


class Command(BaseCommand):
    help = (
        "Imports Northwind from customers.csv, products.csv, orders.csv and "
        "order-details.csv: all of it or, where a row is wrong, nothing. Rows that are "
        "in the database already are never changed: a second import is refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder of the CSV files")
        parser.add_argument(
            "--database",
            choices=list(connections),
            default=DEFAULT_DB_ALIAS,
            help="the alias of the database to import into (default: %(default)s)",
        )

    def handle(self, *args: Any, folder: Path, database: str, **options: Any) -> None:
        self._require_tables(database)
        try:
            northwind = read(folder)
        except WrongFilesError as error:
            raise CommandError(f"{error}\nNothing was imported.") from error
        self._require_none_of(northwind, database)
        graph = graph_of(northwind)
        console = console_for(self.stdout, options)
        try:
            with progress_bar(console, len(graph)) as advance:
                figures = load(graph, database, advance)
        except (DatabaseError, HiLoError) as error:
            raise CommandError(f"{error}\nNothing was imported.") from error
        print_figures(console, "Northwind", figures)

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
