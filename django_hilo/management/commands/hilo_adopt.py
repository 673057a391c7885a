"""The command that raises a counter over that of another system."""

import re
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.utils.module_loading import import_string

from django_hilo._operations.move_counter import plan
from django_hilo._operations.report import told
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.source import Source
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import shown

_NAME = re.compile(r'[^"`.]+|"[^"`]+"|`[^"`]+`')


class Command(BaseCommand):
    """Raise our own counter over that of another system, or the other way round."""

    help = (
        "Raises our counter above that of another system, the ids in the model's table "
        "and the keys of --table; with --back, raises the other system's counter. "
        "Never lowers one. Try --dry-run first; then stop each process that uses one "
        "of them, run this, and start only those that use the new counter."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "target", help="A collection, or a model such as shop.Order."
        )
        parser.add_argument(
            "--source",
            type=_source,
            metavar="PATH",
            help="The other counter's source object, such as shop.sources.ORDERS. "
            "Default: the source of the field, or of HILO['SOURCES'].",
        )
        parser.add_argument(
            "--table",
            type=_column,
            metavar="TABLE.COLUMN",
            help="A table whose integer keys the counter must exceed as well.",
        )
        parser.add_argument(
            "--back",
            action="store_true",
            help="Raise the other system's counter above ours.",
        )
        parser.add_argument(
            "--database",
            choices=tuple(connections),
            help="The database of the rows. Default: where the routers write them.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only print what would be raised."
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="Accept a row more than HILO['MAX_FLOOR_JUMP'] above both counters.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            move = plan(
                options["target"],
                options["database"],
                source=options["source"],
                table=_quoted(options["table"], options["database"]),
                back=options["back"],
            )
            for finding in move.found:
                self.stdout.write(f"{finding.name}: up to {finding.number}")
            self.stdout.write(f"{move.to.name}: up to {move.before}")
            if not move.is_needed:
                self.stdout.write("It is above all of these; there is nothing to do.")
            elif options["dry_run"]:
                self.stdout.write(f"It would be raised to {move.number}.")
            else:
                if not options["force"]:
                    move.check_jump()
                move.make()
                after = move.to.source.read_max(move.to.using)
                self.stdout.write(self.style.SUCCESS(f"It was raised to {after}."))
        except (HiLoError, LookupError, ValueError) as error:
            raise CommandError(str(error)) from error
        except Error as error:
            alias = options["database"] or DEFAULT_DB_ALIAS
            raise CommandError(told(error, alias)) from error


def _source(path: str) -> Source:
    try:
        found = import_string(path)
    except ImportError as error:
        raise ArgumentTypeError(f"{path!r} cannot be imported: {error}") from error
    if not isinstance(found, Source):
        raise ArgumentTypeError(f"{path!r} is not a source of django_hilo: {found!r}.")
    return found


def _quoted(table: KeyColumn | None, using: str | None) -> KeyColumn | None:
    """Return a table for SQL, whose name may have a schema."""
    if table is None or "." not in table.table:
        return table
    ops = connections[using or DEFAULT_DB_ALIAS].ops
    parts = [ops.quote_name(part) for part in _NAME.findall(table.table)]
    return table._replace(table=".".join(parts))


def _column(text: str) -> KeyColumn:
    table, _, column = text.rpartition(".")
    if not table or not column:
        raise ArgumentTypeError(f"{shown(text)} is not of the form TABLE.COLUMN.")
    # Django quotes names, but for those in quotes, and no quote inside one.
    if ".".join(_NAME.findall(text)) != text:
        raise ArgumentTypeError(f"{shown(text)} contains a quotation mark.")
    return KeyColumn(table, column)
