"""Keys that a plain AlterField would change to a `HiLoField`, leaving their values."""

from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, models
from django.db.migrations.operations import AlterField, RenameModel
from django.db.migrations.state import ProjectState

from django_hilo.fields import HiLoField
from django_hilo.moving.relations import has_rows, is_ours, names_in


def check_plan(plan: list[tuple[Any, bool]], apps: Any, using: str) -> None:
    """Raise CommandError if a migration of the plan needs `MoveToHiLo`.

    Tables without rows and keys that are texts pass, and so do migrations with
    ``hilo_keeps_keys = True``. Rows that the plan itself inserts are refused by the
    AlterField, before it changes anything. ``apps`` is the state before the plan. Reads
    nothing for plans without such keys.
    """
    if not any(_makes_key(each) for step, _ in plan for each in step.operations):
        return
    state = ProjectState.from_apps(apps)
    now = {model._meta.label_lower: model for model in apps.get_models()}
    for migration, is_backwards in plan:
        if is_backwards:
            return
        label, keeps = migration.app_label, getattr(migration, "hilo_keeps_keys", False)
        for operation in migration.operations:
            if isinstance(operation, RenameModel):
                old = f"{label}.{operation.old_name_lower}"
                if old in now:
                    now[f"{label}.{operation.new_name_lower}"] = now.pop(old)
            elif _makes_key(operation) and not keeps:
                operation.database_forwards = partial(_checked, migration, operation)
                if model := now.get(f"{label}.{operation.model_name_lower}"):
                    # A clone, because rendered models make each state_forwards slow.
                    _check(migration, operation, model, state.clone(), using)
            operation.state_forwards(label, state)


def _makes_key(operation: Any) -> bool:
    return (
        isinstance(operation, AlterField)
        and isinstance(operation.field, HiLoField)
        and operation.field.primary_key
    )


def _checked(
    migration: Any, operation: Any, label: str, editor: Any, old: Any, new: Any
) -> None:
    """Run an AlterField; raise CommandError first if the plan has inserted rows."""
    model = old.apps.get_model(label, operation.model_name)
    _check(migration, operation, model, old, editor.connection.alias)
    # By the class, because the operation's own attribute is this function.
    type(operation).database_forwards(operation, label, editor, old, new)


def _check(
    migration: Any, operation: Any, model: type[models.Model], state: Any, using: str
) -> None:
    """Raise CommandError if a model has rows, and no text as its key in a state."""
    if not _has_rows(model, using):
        return
    before = state.apps.get_model(migration.app_label, operation.model_name)
    key = old = before._meta.get_field(operation.name)
    while key.remote_field is not None:
        key = key.target_field
    if not isinstance(key, models.CharField | models.TextField):
        raise _refusal(migration, operation, old, model, using)


def _has_rows(model: type[models.Model], using: str) -> bool:
    connection, table = connections[using], model._meta.db_table
    if not is_ours(model, using):
        return False
    tables = set(connection.introspection.table_names())
    if not names_in(table, tables, connection):
        return False
    return has_rows(connection, table)


def _refusal(
    migration: Any, operation: Any, before: Any, model: Any, using: str
) -> CommandError:
    app_label = migration.app_label
    return CommandError(
        f"{migration} changes {app_label}.{operation.model_name}.{operation.name} from "
        f"{type(before).__name__} to HiLoField by AlterField, but "
        f"{model._meta.db_table!r} on {using!r} has rows, whose keys would not become "
        f"ids. Replace AlterField by django_hilo.moving.MoveToHiLo, which converts "
        f"integers and UUIDs and the references to them: delete this migration, and "
        f"run `manage.py hilo_move_plan {app_label} --write --name NAME`. To keep the "
        f"keys, set hilo_keeps_keys = True on the Migration class."
    )
