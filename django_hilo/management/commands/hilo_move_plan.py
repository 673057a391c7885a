"""The command that writes a migration with moves, or prints what it would do."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, Error, connections

from django_hilo._database.dialects.base import rows_of
from django_hilo._operations.report import reach, told
from django_hilo.exceptions import HiLoError
from django_hilo.management.piped import PipedCommand
from django_hilo.moving.finding import Found, moves_in
from django_hilo.moving.operations import together
from django_hilo.moving.steps import Step
from django_hilo.moving.writing import writing_command


class Command(PipedCommand):
    """Print the steps of a migration with moves, or write the migration."""

    help = (
        "Prints the steps that the MoveToHiLo and MoveFromHiLo operations of a "
        "migration would take on a database, with tables, rows, locks and SQL, after "
        "checking that the move is possible. Changes nothing. With --write, writes the "
        "migration instead."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("app_label", help="App label of the migration.")
        either = parser.add_mutually_exclusive_group(required=True)
        either.add_argument(
            "migration_name", nargs="?", help="Name of the migration, or a prefix."
        )
        either.add_argument(
            "--write",
            action="store_true",
            help="Write the app's next migration, as makemigrations does, with "
            "MoveToHiLo for each key that models.py changed to a HiLoField, and "
            "MoveFromHiLo for each that it changed from one.",
        )
        parser.add_argument("-n", "--name", help="With --write: the migration's name.")
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database of the rows. Default: %(default)s.",
        )
        parser.add_argument(
            "--backwards", action="store_true", help="Print the reverse migration."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        app_label, name = options["app_label"], options["migration_name"]
        backwards = options["backwards"]
        try:
            if options["write"]:
                self.write(app_label, options)
                return
            reach(connection.alias)
            for found in moves_in(app_label, name, connection, is_applied=backwards):
                self.show_move(found, connection, backwards)
        except HiLoError as error:
            raise CommandError(str(error)) from error
        except Error as error:
            raise CommandError(told(error, connection.alias)) from error
        self.stdout.write("Nothing was changed.")

    def write(self, app_label: str, options: dict[str, Any]) -> None:
        given = {each: options[each] for each in ("name", "verbosity")}
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        call_command(writing_command(), app_label, **given, **streams)

    def show_move(self, found: Found, connection: Any, backwards: bool) -> None:
        steps = found.operation.steps(
            found.migration.app_label,
            connection,
            found.before,
            found.after,
            forwards=not backwards,
        )
        moves = ", ".join(each.describe() for each in together(found.operation))
        place = f"{connection.alias!r} ({connection.display_name})"
        title = f"{moves} on {place}, {len(steps)} steps"
        self.stdout.write(self.style.MIGRATE_HEADING(title))
        for number, step in enumerate(steps, 1):
            self.show(number, step, connection)

    def show(self, number: int, step: Step, connection: Any) -> None:
        self.stdout.write(f"{number}. {step.what}")
        if step.table:
            self.stdout.write(f"   table: {_counted(step.table, connection)}")
        if step.lock:
            self.stdout.write(f"   lock: {step.lock}")
        for statement in step.sql:
            self.stdout.write(f"   {statement}")


def _counted(tables: str, connection: Any) -> str:
    """Return the names of tables, each with the number of its rows if it exists."""
    known = set(connection.introspection.table_names())
    found = []
    for table in tables.split(", "):
        rows = ""
        if table in known:
            quoted = connection.ops.quote_name(table)
            query = f"SELECT COUNT(*) FROM {quoted}"  # noqa: S608 - quoted
            rows = f" ({rows_of(connection, query)[0][0]} rows)"
        found.append(f"{table}{rows}")
    return ", ".join(found)
