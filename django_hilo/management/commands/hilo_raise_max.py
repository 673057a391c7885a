"""The command that raises counters to the highest ids in the tables."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, Error, connections

from django_hilo._allocation.target import resolve
from django_hilo._operations.highest_numbers import highest_number, sparing
from django_hilo._operations.locations import aliases, fields_on, gapless_fields_on
from django_hilo.counters.gapless import last_gapless_number, seed_gapless_number
from django_hilo.counters.own import OwnCounter
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import shown


class Command(BaseCommand):
    """Raise counters to the highest ids in the tables."""

    help = (
        "Raises Max of each counter, and each gapless counter, to the highest id in "
        "the tables if it is lower: after a restore, a failover or an import by SQL. "
        "Never lowers a counter. Other processes may write at the same time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "collections",
            nargs="*",
            metavar="collection",
            help="Only these collections. Default: all.",
        )
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database of the rows. Default: %(default)s.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only print what would be raised."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.verbosity, self.is_dry_run = options["verbosity"], options["dry_run"]
        using = options["database"]
        wanted = {collection.lower() for collection in options["collections"]}
        tasks = [(field, self.raise_one) for field in fields_on(using)]
        tasks += [(field, self.raise_gapless) for field in gapless_fields_on(using)]
        if not tasks:
            elsewhere = [alias for alias in aliases() if any(fields_on(alias))]
            if elsewhere:
                raise CommandError(
                    f"No model has ids on {using!r}. Use --database for each database "
                    f"that has: {', '.join(elsewhere)}."
                )
            self.say("No model has ids.")
        known = {field.collection_name.lower() for field, _ in tasks}
        missing = ", ".join(map(shown, sorted(wanted - known)))
        if missing:
            raise CommandError(
                f"No model on {using!r} has ids of {missing}. Choose from: "
                f"{', '.join(sorted(known))}."
            )
        failed = 0
        for field, raise_it in tasks:
            if not wanted or field.collection_name.lower() in wanted:
                try:
                    with sparing(using):
                        raise_it(field, using)
                except (Error, HiLoError) as error:
                    failed += 1
                    told = f"{field}: {str(error).strip()}"
                    self.stderr.write(self.style.ERROR(told))
        if failed:
            raise CommandError(
                f"{failed} of the counters could not be compared with their tables: "
                f"see the errors above."
            )

    def raise_one(self, field: Any, using: str) -> None:
        target = resolve(field, using)
        highest = highest_number(field, using, target.node_tag)
        current = target.source.read_max(target.using)
        name = f"{field}: Max of {target.collection!r} on {target.using!r}"
        raise_it = partial(target.source.raise_floor, target.using, highest)
        self.raise_if_lower(name, current, highest, raise_it)
        is_own = isinstance(target.source, OwnCounter)
        if is_own and 0 < highest <= current and not self.is_dry_run:
            # After a restore the counter has the ticket of a range whose return must
            # not lower Max under the highest id.
            raise_it()

    def raise_gapless(self, field: Any, using: str) -> None:
        collection, highest = field.collection_name, highest_number(field, using, "")
        name = f"{field}: the last gapless number of {collection!r} on {using!r}"
        raise_it = partial(seed_gapless_number, collection, highest, using)
        current = last_gapless_number(collection, using)
        self.raise_if_lower(name, current, highest, raise_it)

    def raise_if_lower(
        self, name: str, current: int, highest: int, raise_it: Callable[[], object]
    ) -> None:
        if highest <= current:
            self.say(f"{name} is {current}, the highest number in use is {highest}.")
        elif self.is_dry_run:
            self.say(f"{name} would be raised from {current} to {highest}.")
        else:
            raise_it()
            self.say(self.style.SUCCESS(f"{name} was raised: {current} to {highest}."))

    def say(self, text: str) -> None:
        if self.verbosity >= 1:
            self.stdout.write(text)
