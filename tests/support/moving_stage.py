"""Migrations of an app that is not there, run on the test database itself."""

from collections.abc import Callable
from typing import Any

from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from django_hilo.fields import HiLoField
from django_hilo.moving import MoveToHiLo
from django_hilo.moving.steps import Step

APP = "moved"


def owner(key: models.Field, **options: Any) -> migrations.CreateModel:
    fields = [
        ("id", key),
        ("name", models.CharField(max_length=50)),
        ("parent", models.ForeignKey(f"{APP}.owner", models.CASCADE, null=True)),
    ]
    return migrations.CreateModel("Owner", fields, options=options)


def item(key: models.Field | None = None, **options: Any) -> migrations.CreateModel:
    to_owner = models.ForeignKey(f"{APP}.owner", models.CASCADE, **options)
    fields = [("id", key or models.BigAutoField(primary_key=True)), ("owner", to_owner)]
    return migrations.CreateModel("Item", fields)


def move_owner(**options: Any) -> MoveToHiLo:
    field = options.pop("field", None) or HiLoField(primary_key=True)
    return MoveToHiLo("owner", "id", field, **options)


def log_of(key: object) -> LogEntry:
    """Return an entry of the admin's log for an owner."""
    # With a key of its own: a test before may have set the sequence back.
    return LogEntry.objects.create(
        user=User.objects.create(username="someone"),
        content_type=ContentType.objects.create(pk=5000, app_label=APP, model="owner"),
        object_id=str(key),
        action_flag=ADDITION,
    )


class Stage:
    """The states of an app, and the tables that go with them."""

    def __init__(self) -> None:
        self.states = [ProjectState()]
        self.done: list[migrations.Migration] = []

    def migrate(self, *operations: Any) -> None:
        """Run a migration of these operations."""
        migration = migrations.Migration("some", APP)
        migration.operations = list(operations)
        state = self.states[-1].clone()
        with connection.schema_editor(atomic=migration.atomic) as editor:
            state = migration.apply(state, editor)
        self.states.append(state)
        self.done.append(migration)

    def undo(self) -> None:
        """Run the last migration backwards."""
        with connection.schema_editor(atomic=True) as editor:
            self.done[-1].unapply(self.states[-2].clone(), editor)
        self.states.pop()
        self.done.pop()

    def model(self, name: str) -> Any:
        return self.states[-1].apps.get_model(APP, name)

    def drop(self) -> None:
        tables = connection.introspection.table_names()
        with connection.constraint_checks_disabled(), connection.cursor() as cursor:
            for table in tables:
                if table.startswith((f"{APP}_", f"hilo_moved_{APP}_", f"new__{APP}_")):
                    cascade = " CASCADE" if connection.vendor == "postgresql" else ""
                    name = connection.ops.quote_name(table)
                    cursor.execute(f"DROP TABLE {name}{cascade}")


class Broken(Exception):
    """A step that was made to fail."""


def failing_before(monkeypatch: Any, number: int) -> Callable[[], None]:
    """Let the step of this number fail, as a crash would; return what mends it."""
    run, seen = Step.run, iter(range(10_000))

    def broken(step: Step, editor: Any) -> None:
        if next(seen) == number:
            raise Broken(step.what)
        run(step, editor)

    monkeypatch.setattr(Step, "run", broken)
    return lambda: monkeypatch.setattr(Step, "run", run)
