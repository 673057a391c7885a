from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connections

from django_hilo.exceptions import HiLoError
from django_hilo.models import HiLoDocument
from django_hilo.sources.base import Source
from django_hilo.tables import aliases, homes, may_have_table, other_sources

# Rows of one model in one bucket, from which on there is a warning.
OVERSIZED = 100_000
_LARGEST = 5


class Command(BaseCommand):
    help = (
        "Shows the counters, or how full the buckets are that ids belong to. Changes "
        "nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--database",
            choices=tuple(connections),
            help="Only this database; all where none is given.",
        )
        parser.add_argument(
            "--buckets",
            action="store_true",
            help="The rows of each model by bucket and database. Reads all ids of "
            "models without a BucketField.",
        )
        parser.add_argument(
            "--oversized",
            type=_count,
            default=OVERSIZED,
            metavar="ROWS",
            help="Warn of buckets with more rows of a model. Default: %(default)s.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        using = options["database"]
        try:
            if options["buckets"]:
                self.show_buckets([using] if using else aliases(), options["oversized"])
            else:
                self.show_counters([using] if using else homes())
                self.show_sources([using] if using else aliases())
        except Error as error:
            raise CommandError(
                f"{str(error).strip()} (Are all migrations applied?)"
            ) from error
        except ImportError as error:
            raise CommandError(str(error)) from error

    def show_counters(self, databases: Iterable[str]) -> None:
        head = ("database", "collection", "node tag", "Max", "floor", "newest range")
        rows = [
            (
                alias,
                document.collection,
                document.node_tag or "-",
                str(document.max),
                str(document.floor),
                _newest_range(document),
                _when(document),
            )
            for alias in databases
            for document in HiLoDocument.objects.using(alias)
        ]
        if rows:
            self.show_table([(*head, "reserved at"), *rows])
        else:
            self.stdout.write("There are no counters yet.")

    def show_sources(self, databases: Iterable[str]) -> None:
        """Show the counters that are no HiLoDocuments, where there are some."""
        rows = [
            (alias, collection, source.name, _highest(source, alias))
            for alias in databases
            for collection, source in other_sources(alias)
        ]
        if rows:
            head = ("database", "collection", "numbers come from", "given up to")
            self.stdout.write("")
            self.show_table([head, *rows])

    def show_table(self, rows: Sequence[Sequence[str]]) -> None:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    def show_buckets(self, databases: Sequence[str], oversized: int) -> None:
        # It needs xxhash, which the counters do not.
        from django_hilo.sharding.sizes import keys_with_buckets

        found = False
        for field in keys_with_buckets():
            found = True
            having = [each for each in databases if may_have_table(each, field.model)]
            self.show_model(field, having, oversized)
        if not found:
            self.stdout.write(
                "No model has ids with anchors, a BucketField, or HILO['SHARDS']."
            )

    def show_model(self, field: Any, databases: Sequence[str], oversized: int) -> None:
        from django_hilo.sharding.sizes import measure

        sizes = {alias: measure(field, alias, _LARGEST) for alias in databases}
        total = sum(size.rows for size in sizes.values())
        self.stdout.write(f"{field.model._meta.label}: {total} rows")
        for alias, size in sizes.items():
            self.stdout.write(
                f"  {alias}: {size.rows} rows ({size.rows / (total or 1):.1%}) "
                f"in {size.buckets} buckets"
            )
            for bucket in size.largest:
                line = f"    bucket {bucket.number}: {bucket.rows} rows ({bucket.text})"
                if bucket.rows > oversized:
                    line = self.style.WARNING(
                        f"{line}\n    is oversized, over {oversized} rows: a bucket "
                        f"cannot be split. Anchor new rows to something smaller."
                    )
                self.stdout.write(line)


def _highest(source: Source, alias: str) -> str:
    try:
        return str(source.read_max(alias))
    except (HiLoError, Error) as error:
        return f"unknown: {str(error).splitlines()[0]}"


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no count of rows: at least 1.")
    return int(text)


def _newest_range(document: HiLoDocument) -> str:
    if document.size < 1:
        return "-"
    return f"{document.low} to {document.low + document.size - 1}"


def _when(document: HiLoDocument) -> str:
    at = document.reserved_at
    return at.isoformat(" ", "seconds") if at else "-"
