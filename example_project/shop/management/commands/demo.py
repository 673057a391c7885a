from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.utils import timezone
from rich.console import Console

from django_hilo.exceptions import HiLoError
from example_project.shop.administrator import USERNAME, new_token, renew_administrator
from example_project.shop.factories import made_up_graph
from example_project.shop.graph import Graph, graph_of
from example_project.shop.loading import Figures, load
from example_project.shop.models import Announcement
from example_project.shop.northwind import WrongFilesError, read
from example_project.shop.present import figures_present, missing_invoices, rows_present
from example_project.shop.report import console_for, print_figures, progress_bar
from example_project.shop.server import LocalServer
from example_project.shop.visits import visit_all


class Command(BaseCommand):
    help = (
        "Migrates the database, fills it, and serves the shop on 127.0.0.1 until "
        "Ctrl-C. Without a terminal it requests every page instead, and exits with 1 "
        "if one is not answered as it should be. Each run adds made-up rows, or "
        "Northwind once, and gives the user 'admin' a new password."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder",
            type=Path,
            nargs="?",
            help="the folder of Northwind's CSV files (default: made-up rows)",
        )

    def handle(self, *args: Any, folder: Path | None, **options: Any) -> None:
        console = console_for(self.stdout, options)
        has_terminal = sys.stdin.isatty() and self.stdout.isatty()
        if not has_terminal:
            console.print(
                "Without a terminal: fill the shop, request each page once, and end. "
                "In a terminal, the shop is served until Ctrl-C.",
                soft_wrap=True,
            )
        call_command("migrate", verbosity=0, interactive=False)
        if folder is None:
            self._load(console, "Made-up rows", made_up_graph())
        else:
            self._load_northwind(console, folder)
        password = renew_administrator()
        if has_terminal:
            self._serve(password, log=options["verbosity"] > 0)
        else:
            self._visit(console, password)

    def _load_northwind(self, console: Console, folder: Path) -> None:
        try:
            northwind = read(folder)
        except WrongFilesError as error:
            raise CommandError(f"{error}\nNothing was imported.") from error
        present = rows_present(northwind, DEFAULT_DB_ALIAS)
        if present:
            console.print(
                f"{len(present)} rows of {folder} are in the database already. Nothing "
                f"was imported; the demo goes on with what is there."
            )
            self._insert(console, missing_invoices())
            print_figures(console, "In the database", figures_present())
            return
        graph = graph_of(northwind)
        graph.add_invoices()
        self._load(console, "Northwind", graph)

    def _load(self, console: Console, title: str, graph: Graph) -> None:
        print_figures(console, title, self._insert(console, graph))
        Announcement.objects.create(
            text=f"{title}: {len(graph)} new rows in the shop.",
            published_on=timezone.localdate(),
        )

    def _insert(self, console: Console, graph: Graph) -> list[Figures]:
        try:
            with progress_bar(console, len(graph)) as advance:
                return load(graph, DEFAULT_DB_ALIAS, advance)
        except (DatabaseError, HiLoError) as error:
            raise CommandError(f"{error}\nNothing was inserted.") from error

    def _serve(self, password: str, log: bool) -> None:
        server, token = LocalServer(log=log), new_token()
        # Whatever the verbosity: nobody could use the server without.
        self.stdout.write(f"The shop:  {server.url}/")
        self.stdout.write(f"The admin: {server.url}/admin/")
        self.stdout.write(f"The API:   {server.url}/api/docs/")
        self.stdout.write(f"User:      {USERNAME}")
        self.stdout.write(f"Password:  {password}")
        self.stdout.write(f"RavenDB:   {server.url}/raven/{token}, database shop")
        self.stdout.write("Ctrl-C ends it.")
        self.stdout.flush()
        server.serve_until_interrupted()
        self.stdout.write("\nThe server has ended.")

    def _visit(self, console: Console, password: str) -> None:
        visited = wrong = 0
        with LocalServer(log=False).in_background() as url:
            for visit, right in visit_all(url, USERNAME, password):
                visited += 1
                wrong += not right
                mark = "" if right else f"  WRONG, led to {visit.path}"
                console.print(
                    f"{visit.method:4} {visit.url}  {visit.status}  "
                    f"{len(visit.content)} bytes  {visit.title}{mark}",
                    soft_wrap=True,
                )
        if wrong:
            raise CommandError(
                f"{wrong} of {visited} pages did not answer as they should."
            )
        console.print(f"{visited} pages, each answered with 200.")
