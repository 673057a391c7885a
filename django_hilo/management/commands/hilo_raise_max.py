"""The command that raises counters to the highest ids in the tables."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, Error, connections

from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import home_of
from django_hilo._operations.highest_in_series import highest_in_series
from django_hilo._operations.highest_numbers import check_jump, highest_number, sparing
from django_hilo._operations.locations import (
    aliases,
    fields_on,
    gapless_fields_on,
    series_fields_on,
)
from django_hilo._operations.report import reach, told
from django_hilo.counters.gapless import last_gapless_number, seed_gapless_number
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
            help="Only these collections, or models such as shop.Order. Default: all.",
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
        parser.add_argument(
            "--check",
            action="store_true",
            help="As --dry-run, and exit with 1 if a counter is too low.",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="Raise counters by more than HILO['MAX_FLOOR_JUMP'], too.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.verbosity, self.is_forced = options["verbosity"], options["force"]
        self.only_looks = options["dry_run"] or options["check"]
        self.too_low, self.failed, self.high_enough = 0, 0, list[str]()
        using = options["database"]
        try:
            reach(using, home_of(using))
        except HiLoError as error:
            raise CommandError(str(error)) from error
        wanted = {name.lower() for name in options["collections"]}
        tasks = [(field, self.raise_one) for field in fields_on(using)]
        tasks += [(field, self.raise_gapless) for field in gapless_fields_on(using)]
        tasks += [(field, self.raise_series) for field in series_fields_on(using)]
        if not tasks:
            elsewhere = [alias for alias in aliases() if any(fields_on(alias))]
            if elsewhere:
                raise CommandError(
                    f"No model has ids on {using!r}. Use --database for each database "
                    f"that has: {', '.join(elsewhere)}."
                )
            self.say("No model has ids.")
        unknown = wanted.difference(*(_names_of(field) for field, _ in tasks))
        missing = ", ".join(map(shown, sorted(unknown)))
        if missing:
            known = {field.collection_name.lower() for field, _ in tasks}
            raise CommandError(
                f"No model on {using!r} has ids of {missing}. Choose from: "
                f"{', '.join(sorted(known))}."
            )
        for field, raise_it in tasks:
            if not wanted or wanted & _names_of(field):
                self.attempt(partial(raise_it, field, using), str(field), using)
        self.say_high_enough(in_full=bool(wanted) or self.verbosity > 1)
        if self.failed:
            raise CommandError(
                f"{self.failed} of the counters could not be checked or raised: see "
                f"the errors above."
            )
        if options["check"] and self.too_low:
            raise CommandError(
                f"Counters that are too low: {self.too_low}. Run hilo_raise_max "
                f"without --check."
            )

    def attempt(self, act: Callable[[], object], name: str, using: str) -> None:
        """Do something for one counter; an error does not stop what follows."""
        try:
            with sparing(using):
                act()
        except (Error, HiLoError) as error:
            self.failed += 1
            self.stderr.write(self.style.ERROR(f"{name}: {told(error, using)}"))

    def raise_one(self, field: Any, using: str) -> None:
        counter = resolve(field, using)
        found = highest_number(field, using, counter.node_tag)
        current, highest = counter.source.read_max(counter.using), found[0]
        name = f"{field}: Max of {counter.collection!r} on {counter.using!r}"
        raise_it = partial(counter.source.raise_floor, counter.using, highest)
        self.raise_if_lower(name, current, found, raise_it)
        if 0 < highest <= current and not self.only_looks:
            # After a restore our counter has the ticket of a range whose return must
            # not lower Max under the highest id, and MariaDB's sequences have lower
            # values in a cache.
            raise_it()

    def raise_gapless(self, field: Any, using: str) -> None:
        collection, found = field.collection_name, highest_number(field, using, "")
        name = f"{field}: the last gapless number of {collection!r} on {using!r}"
        raise_it = partial(seed_gapless_number, collection, found[0], using)
        current = last_gapless_number(collection, using)
        self.raise_if_lower(name, current, found, raise_it)

    def raise_series(self, field: Any, using: str) -> None:
        for series, number, _ in highest_in_series(field, using):
            found = number, series.format.text(number)
            raise_it: Callable[[], object]
            if field.ids.is_gapless:
                name = f"{field}: the last gapless number of {series.name!r}"
                current = last_gapless_number(series.name, using)
                raise_it = partial(seed_gapless_number, series.name, number, using)
            else:
                counter = resolve(series, using)
                name = f"{field}: Max of {series.name!r}"
                current = counter.source.read_max(counter.using)
                raise_it = partial(counter.source.raise_floor, counter.using, number)
            where = f"{name} on {using!r}"
            act = partial(self.raise_if_lower, where, current, found, raise_it)
            self.attempt(act, f"{field}, {series.name!r}", using)

    def raise_if_lower(
        self,
        name: str,
        current: int,
        found: tuple[int, str],
        raise_it: Callable[[], object],
    ) -> None:
        highest, its_id = found
        if highest <= current:
            self.high_enough.append(
                f"{name} is {current}, the highest number in use is {highest}."
            )
            return
        self.too_low += 1
        if not self.is_forced:
            check_jump(current, highest, its_id)
        if self.only_looks:
            self.say(f"{name} would be raised from {current} to {highest}.")
        else:
            raise_it()
            self.say(self.style.SUCCESS(f"{name} was raised: {current} to {highest}."))

    def say_high_enough(self, *, in_full: bool) -> None:
        """Say last which counters were high enough; a project may have hundreds."""
        count = len(self.high_enough)
        if in_full:
            self.say(*self.high_enough)
        elif count:
            what = "1 counter needs" if count == 1 else f"{count} counters need"
            self.say(f"{what} no change.")

    def say(self, *lines: str) -> None:
        if self.verbosity >= 1:
            for line in lines:
                self.stdout.write(line)


def _names_of(field: Any) -> set[str]:
    """Return what a field may be called: as ids, and as this command, show it."""
    names = field.collection_name, field.model._meta.label, str(field)
    return {name.lower() for name in names}
