"""AlterField to or from a `HiLoField` key, which leaves the keys of rows unchanged."""

from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, models
from django.db.migrations.operations import AlterField, CreateModel, RenameModel
from django.db.migrations.state import ProjectState

from django_hilo.fields import HiLoField
from django_hilo.moving.relations import has_rows, is_ours, names_in

_PLAIN = models.IntegerField, models.UUIDField


def check_plan(plan: list[tuple[Any, bool]], apps: Any, using: str) -> None:
    """Raise CommandError if a migration of the plan needs a move instead of AlterField.

    Tables without rows and keys that stay texts pass, and so do migrations to a
    `HiLoField` with ``hilo_keeps_keys = True``. Rows that the plan itself inserts are
    refused by the AlterField, before it changes anything. ``apps`` is the state before
    the plan. Computes no state for plans without such keys.
    """
    if not _may_matter(plan, apps):
        return
    state = ProjectState.from_apps(apps)
    now = {model._meta.label_lower: model for model in apps.get_models()}
    for migration, is_backwards in plan:
        if is_backwards:
            return
        label = migration.app_label
        for operation in migration.operations:
            if isinstance(operation, RenameModel):
                old = f"{label}.{operation.old_name_lower}"
                if old in now:
                    now[f"{label}.{operation.new_name_lower}"] = now.pop(old)
            elif _needs_move(operation, label, state) and not _keeps(
                migration, operation
            ):
                operation.database_forwards = partial(_checked, migration, operation)
                if model := now.get(f"{label}.{operation.model_name_lower}"):
                    # A clone, because rendered models make each state_forwards slow.
                    _check(migration, operation, model, state.clone(), using)
            operation.state_forwards(label, state)


def _may_matter(plan: list[tuple[Any, bool]], apps: Any) -> bool:
    """Whether a plan alters a key, and there are HiLoField keys; computes no state."""
    operations = [each for step, _ in plan for each in step.operations]
    if not any(map(_may_need_move, operations)):
        return False
    fields = [model._meta.pk for model in apps.get_models()]
    for each in operations:
        made = each.fields if isinstance(each, CreateModel) else ()
        fields += [getattr(each, "field", None), *(field for _, field in made)]
    return any(isinstance(each, HiLoField) and each.primary_key for each in fields)


def _may_need_move(operation: Any) -> bool:
    return (
        isinstance(operation, AlterField)
        and isinstance(operation.field, (HiLoField, *_PLAIN))
        and operation.field.primary_key
    )


def _needs_move(operation: Any, label: str, state: ProjectState) -> bool:
    """Whether an operation changes a key to a HiLoField, or one to another type."""
    if not _may_need_move(operation):
        return False
    old = state.models[label, operation.model_name_lower].fields[operation.name]
    return isinstance(operation.field, HiLoField) or isinstance(old, HiLoField)


def _keeps(migration: Any, operation: Any) -> bool:
    """Whether a migration says that the keys are ids already."""
    is_said: bool = getattr(migration, "hilo_keeps_keys", False)
    return is_said and isinstance(operation.field, HiLoField)


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
    """Raise CommandError if a model has rows, and another kind of key in a state."""
    if not _has_rows(model, using):
        return
    before = state.apps.get_model(migration.app_label, operation.model_name)
    key = old = before._meta.get_field(operation.name)
    while key.remote_field is not None:
        key = key.target_field
    is_text = isinstance(key, models.CharField | models.TextField)
    if is_text is not isinstance(operation.field, HiLoField):
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
    app_label, new = migration.app_label, type(operation.field).__name__
    is_there = isinstance(operation.field, HiLoField)
    move = "MoveToHiLo" if is_there else "MoveFromHiLo"
    keep = " To keep the keys, set hilo_keeps_keys = True on the Migration class."
    return CommandError(
        f"{migration} changes {app_label}.{operation.model_name}.{operation.name} from "
        f"{type(before).__name__} to {new} by AlterField, but "
        f"{model._meta.db_table!r} on {using!r} has rows, whose keys it would not "
        f"convert. Replace AlterField by django_hilo.moving.{move}, which converts "
        f"keys and the references to them: delete this migration, and run "
        f"`manage.py hilo_move_plan {app_label} --write --name NAME`."
        f"{keep if is_there else ''}"
    )
