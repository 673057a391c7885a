"""Keys that a plain AlterField would change to a `HiLoField`, leaving their values."""

from typing import Any

from django.core.management.base import CommandError
from django.db import connections, models
from django.db.migrations.operations import AlterField, RenameModel
from django.db.migrations.state import ProjectState

from django_hilo.fields import HiLoField
from django_hilo.moving.relations import is_ours, names_in

_CONVERTED = (models.IntegerField, models.UUIDField)


def check_plan(plan: list[tuple[Any, bool]], apps: Any, using: str) -> None:
    """Raise CommandError if a migration of the plan needs `MoveToHiLo`.

    Tables without rows pass, and so do migrations with ``hilo_keeps_keys = True``.
    ``apps`` is the state before the plan. Reads nothing for plans without such keys.
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
                name = operation.model_name_lower
                before = state.models[label, name].fields[operation.name]
                model = now.get(f"{label}.{name}")
                if isinstance(before, _CONVERTED) and model and _has_rows(model, using):
                    raise _refusal(migration, operation, before, model, using)
            operation.state_forwards(label, state)


def _makes_key(operation: Any) -> bool:
    return (
        isinstance(operation, AlterField)
        and isinstance(operation.field, HiLoField)
        and operation.field.primary_key
    )


def _has_rows(model: type[models.Model], using: str) -> bool:
    connection, table = connections[using], model._meta.db_table
    if not is_ours(model, using):
        return False
    tables = set(connection.introspection.table_names())
    if not names_in(table, tables, connection):
        return False
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT 1")
        return cursor.fetchone() is not None


def _refusal(
    migration: Any, operation: Any, before: Any, model: Any, using: str
) -> CommandError:
    app_label, name = migration.app_label, migration.name
    return CommandError(
        f"{migration} changes {app_label}.{operation.model_name}.{operation.name} from "
        f"{type(before).__name__} to HiLoField by AlterField, and "
        f"{model._meta.db_table!r} on {using!r} has rows. Their keys would not become "
        f"ids. Replace AlterField by django_hilo.moving.MoveToHiLo, which converts the "
        f"keys and the references to them; `manage.py hilo_move_plan {app_label} "
        f"{name}` prints its steps. If the keys should stay as they are, set "
        f"hilo_keeps_keys = True on the Migration class."
    )
