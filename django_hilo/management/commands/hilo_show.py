"""The command that lists counters and bucket sizes."""

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import Error, connections

from django_hilo._operations import report
from django_hilo._operations.locations import aliases, homes
from django_hilo._operations.report import Row
from django_hilo.identifiers import is_counter_name
from django_hilo.management.piped import PipedCommand

# Rows of one model in one bucket, from which on there is a warning.
OVERSIZED = 100_000
# Counters of series that a table shows of one collection; JSON has all.
SERIES = 20


class Command(PipedCommand):
    """List the counters, or the sizes of buckets."""

    help = "Shows the counters, or the number of rows in each bucket. Changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--database",
            choices=tuple(connections),
            help="Only this database. Default: all.",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="Output for people or for programs. Default: %(default)s.",
        )
        parser.add_argument(
            "--buckets",
            action="store_true",
            help="Show the rows of each model by bucket and database. Reads all ids of "
            "models without a BucketField.",
        )
        parser.add_argument(
            "--oversized",
            type=_count,
            default=OVERSIZED,
            metavar="ROWS",
            help="Warn about buckets with more rows than this. Default: %(default)s.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        only = [options["database"]] if options["database"] else None
        self.problems: dict[str, str] = {}
        reached = self.read(_reached, only or aliases())
        try:
            if options["buckets"]:
                from django_hilo._operations import bucket_report  # needs xxhash

                models = bucket_report.buckets(reached, options["oversized"])
                found: dict[str, Iterable[Row]] = {"models": models}
            else:
                found = {
                    "counters": self.read(report.counters, only or homes()),
                    "sources": self.read(report.sources, only or aliases()),
                    "gapless": self.read(report.gapless_counters, only or aliases()),
                }
            if options["format"] == "json":
                lists = {name: list(rows) for name, rows in found.items()}
                self.stdout.write(json.dumps(lists, indent=2))
            elif options["buckets"]:
                self.show_buckets(found["models"], options["oversized"])
            else:
                self.show_counters(**found)
        except Error as error:
            raise CommandError(report.first_line(error)) from error
        except ImportError as error:
            raise CommandError(str(error)) from error
        if self.problems:
            lines = (f"{alias}: {text}" for alias, text in self.problems.items())
            raise CommandError("\n".join(lines))

    def read(
        self, read: Callable[[list[str]], list[Any]], databases: Iterable[str]
    ) -> list[Any]:
        """Read from each database that did not fail before, and keep what fails now."""
        found = []
        for alias in databases:
            if alias not in self.problems:
                try:
                    found += read([alias])
                except Error as error:
                    self.problems[alias] = report.told(error, alias)
        return found

    def show_counters(
        self, counters: Iterable[Row], sources: Iterable[Row], gapless: Iterable[Row]
    ) -> None:
        """Show one table of each kind; only the first where there is nothing."""
        head = ("database", "collection", "node tag", "Max", "floor", "newest range")
        rows = [_cells_of(counter) for counter in _without_most_series(counters)]
        if rows:
            self.show_table([(*head, "reserved at"), *rows])
        elif not self.problems:
            self.stdout.write("There are no counters yet.")
        self.show_more(
            ("database", "collection", "numbers come from", "given up to"),
            [
                (
                    row["database"],
                    row["collection"],
                    row["source"],
                    f"unknown: {row['error']}" if row["error"] else str(row["max"]),
                )
                for row in sources
            ],
        )
        self.show_more(
            ("database", "collection", "last gapless number"),
            [
                (row["database"], row["collection"], str(row["last"]))
                for row in _without_most_series(gapless)
            ],
        )

    def show_more(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if rows:
            self.stdout.write("")
            self.show_table([head, *rows])

    def show_table(self, rows: Sequence[Sequence[str]]) -> None:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    def show_buckets(self, models: Iterable[Row], oversized: int) -> None:
        found = False
        for model in models:
            found = True
            self.show_model(model, oversized)
        if not found and not self.problems:
            self.stdout.write("No model has ids with anchors or a BucketField.")

    def show_model(self, model: Row, oversized: int) -> None:
        total = model["rows"]
        self.stdout.write(f"{model['model']}: {total} rows")
        for size in model["databases"]:
            self.stdout.write(
                f"  {size['database']}: {size['rows']} rows "
                f"({size['rows'] / (total or 1):.1%}) in {size['buckets']} buckets"
            )
            for bucket in size["largest"]:
                line = (
                    f"    bucket {bucket['bucket']}: {bucket['rows']} rows "
                    f"({bucket['text']})"
                )
                if bucket["oversized"]:
                    line = self.style.WARNING(
                        f"{line}\n    is oversized, over {oversized} rows: a bucket "
                        f"cannot be split. Anchor new rows to something smaller."
                    )
                self.stdout.write(line)


def _reached(databases: list[str]) -> list[str]:
    for alias in databases:
        connections[alias].ensure_connection()
    return databases


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not an integer of at least 1.")
    return int(text)


def _without_most_series(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows; of series of one model the first, and how many follow."""
    for (_, name), group in groupby(rows, key=_series_of):
        if not name:
            yield from group
            continue
        found = list(group)
        names = [f"{row['collection']} ({name})" for row in found[:SERIES]]
        if len(found) > SERIES:
            names.append(f"... ({name}, {len(found) - SERIES} more series)")
        for row, shown in zip(found, names, strict=False):
            yield {**row, "collection": shown}


def _series_of(row: Row) -> tuple[str, str]:
    is_series = is_counter_name(row["collection"])
    models = ", ".join(row["models"]) or "no model"
    return row["database"], models if is_series else ""


def _cells_of(counter: Row) -> tuple[str, ...]:
    low, at = counter["low"], counter["reserved_at"]
    return (
        counter["database"],
        counter["collection"],
        counter["node_tag"] or "-",
        str(counter["max"]),
        str(counter["floor"]),
        "-" if low is None else f"{low} to {counter['high']}",
        datetime.fromisoformat(at).isoformat(" ", "seconds") if at else "-",
    )
