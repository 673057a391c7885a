from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from django_hilo.exceptions import HiLoError
from django_hilo.reservation import raise_floor, read_max
from django_hilo.tables import fields_on, highest_number
from django_hilo.targets import resolve


class Command(BaseCommand):
    help = (
        "Raises Max of each counter to the highest id in the tables if it is lower: "
        "after a restore, a failover or an import by SQL. Never lowers it; may run "
        "beside writers."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "collections",
            nargs="*",
            metavar="collection",
            help="Only these collections; all where none is given.",
        )
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database of the rows. Default: %(default)s.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say what would be raised."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        using = options["database"]
        wanted = {collection.lower() for collection in options["collections"]}
        fields = list(fields_on(using))
        known = {field.collection_name.lower() for field in fields}
        missing = ", ".join(sorted(wanted - known))
        if missing:
            raise CommandError(
                f"No model on {using!r} has ids of {missing}. "
                f"There are: {', '.join(sorted(known))}."
            )
        for field in fields:
            if not wanted or field.collection_name.lower() in wanted:
                try:
                    self.raise_one(field, using, options["dry_run"])
                except HiLoError as error:
                    raise CommandError(str(error)) from error

    def raise_one(self, field: Any, using: str, dry_run: bool) -> None:
        target = resolve(field, using)
        highest = highest_number(field, using)
        current = read_max(target.collection, target.using, node_tag=target.node_tag)
        name = f"{field}: Max of {target.collection!r} on {target.using!r}"
        if highest <= current:
            self.say(f"{name} is {current}, the highest id has {highest}.")
        elif dry_run:
            self.say(f"{name} would be raised from {current} to {highest}.")
        else:
            raise_floor(
                target.collection, highest, target.using, node_tag=target.node_tag
            )
            self.say(self.style.SUCCESS(f"{name} was raised: {current} to {highest}."))

    def say(self, text: str) -> None:
        if self.verbosity >= 1:
            self.stdout.write(text)

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.verbosity = options["verbosity"]
        return super().execute(*args, **options)
