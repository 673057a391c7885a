from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations import operations

from django_hilo.exceptions import HiLoError
from django_hilo.moving import preflight
from django_hilo.moving.finding import Found, moves_in
from django_hilo.moving.online import phases
from django_hilo.moving.online.running import Patience, run
from django_hilo.moving.online.swapping import swap
from django_hilo.moving.steps import Move

_BEFORE = {
    "prepare": phases.prepare,
    "backfill": phases.backfill,
    "indexes": phases.indexes,
    "constraints": phases.constraints,
    "abandon": phases.abandon,
}
# What changes nothing in the database.
_OF_STATE = (operations.AlterModelManagers, operations.AlterModelOptions)


class Command(BaseCommand):
    help = (
        "Moves integer keys on PostgreSQL as a migration's MoveToHiLo would, without "
        "long locks, while programs go on writing: prepare, backfill, indexes, "
        "constraints, then swap in one short transaction, and clean. Each phase may be "
        "repeated; up to the swap abandon undoes all of it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("app_label", help="App label of the migration.")
        parser.add_argument("migration_name", help="Name of the migration, or a start.")
        parser.add_argument("phase", choices=(*_BEFORE, "swap", "clean"))
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database of the rows. Default: %(default)s.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only print what would be run."
        )
        parser.add_argument(
            "--lock-timeout",
            type=float,
            default=0.4,
            help="Seconds to wait for a lock, while others wait behind; under half of "
            "the server's deadlock_timeout it is never them who give up. "
            "Default: %(default)s.",
        )
        parser.add_argument(
            "--tries", type=int, default=100, help="How often. Default: %(default)s."
        )
        parser.add_argument(
            "--blocks",
            type=int,
            default=256,
            help="Blocks of the table in a batch of backfill. Default: %(default)s.",
        )
        parser.add_argument(
            "--pause",
            type=float,
            default=0.0,
            help="Seconds between two batches. Default: %(default)s.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        connection, phase = connections[options["database"]], options["phase"]
        try:
            found = moves_in(
                options["app_label"],
                options["migration_name"],
                connection,
                is_applied=phase == "clean",
            )
            work = self.work(phase, found, connection)
            patience = Patience(
                options["lock_timeout"],
                options["tries"],
                options["blocks"],
                options["pause"],
            )
            for each in work:
                self.stdout.write(f"{each.what}\n   lock: {each.lock}")
                if options["dry_run"] or options["verbosity"] > 1:
                    self.show(each)
                if not options["dry_run"]:
                    run(each, connection, patience, self.stdout.write)
        except (HiLoError, Error) as error:
            raise CommandError(str(error).strip()) from error
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")

    def work(
        self, phase: str, found: list[Found], connection: Any
    ) -> list[phases.Work | phases.Batches]:
        first = found[0]
        migration = first.migration
        rest = [
            each for each in migration.operations if not isinstance(each, _OF_STATE)
        ]
        if len(rest) > 1:
            raise HiLoError(
                f"{migration} does more to the database than one MoveToHiLo, and the "
                f"swap records it as applied. Put the rest into other migrations."
            )
        move: Move | None = first.operation.move(
            migration.app_label,
            connection,
            first.before,
            first.after,
            forwards=True,
        )
        if move is None:
            raise HiLoError(
                f"The routers keep the table away from {connection.alias!r}."
            )
        if phase == "clean":
            return phases.clean(move)
        if phase == "swap":
            return [*swap(move, (migration.app_label, migration.name))]
        if phase != "abandon":
            preflight.check_way_there(move, False)
        return _BEFORE[phase](move)

    def show(self, work: phases.Work | phases.Batches) -> None:
        if isinstance(work, phases.Batches):
            self.stdout.write(f"   {work.statement};")
            return
        lines = list(work.statements)
        if work.is_short:
            lines = ["BEGIN", "SET LOCAL lock_timeout = ...", *lines, "COMMIT"]
        for line in lines:
            self.stdout.write(f"   {line};")
