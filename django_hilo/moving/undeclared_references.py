"""References of installed models that the state of the migration does not have."""

from typing import Any

from django.apps import apps as installed
from django.db.migrations.loader import MigrationLoader

from django_hilo.exceptions import HiLoError
from django_hilo.moving.relations import Column, has_rows, is_ours


def check_references(columns: list[Column], connection: Any) -> None:
    """Raise `HiLoError` for a column that contains the key, and is not in the state.

    References with a constraint are in the database's catalogue too.
    """
    known = _columns_in(columns[0].new.model._meta.apps)
    moved = {(column.table, column.column) for column in columns}
    tables = set(connection.introspection.table_names())
    for model in installed.get_models(include_auto_created=True):
        table = str(model._meta.db_table)
        if table not in tables or not is_ours(model, connection.alias):
            continue
        for field in model._meta.local_concrete_fields:
            if field.remote_field is None or (table, field.column) in known:
                continue
            target: Any = field
            while target.remote_field is not None:
                target = target.target_field
            if (target.model._meta.db_table, target.column) in moved and _must_move(
                connection, table, str(field.column)
            ):
                raise HiLoError(
                    f"{model._meta.label}.{field.name} refers to {columns[0]}, but is "
                    f"not in the state of this migration. Add the migration that "
                    f"created it to the dependencies of this one; if its app has no "
                    f"migrations, create some first."
                )


def check_dependencies(operation: Any, columns: list[Column], connection: Any) -> None:
    """Raise `HiLoError` for a column that the way back would not find.

    On the way there the state has all migrations that are applied. On the way back it
    is sure to have only those that the migration of the operation depends on.
    """
    loader = MigrationLoader(connection)
    for node, migration in loader.graph.nodes.items():
        if any(each is operation for each in migration.operations):
            known = _columns_in(loader.project_state(node, at_end=False).apps)
            for column in columns:
                app_label = column.new.model._meta.app_label
                if app_label == node[0] or (column.table, column.column) in known:
                    continue
                applied = [
                    n for app, n in loader.applied_migrations if app == app_label
                ]
                last = max(applied, default="__first__")
                raise HiLoError(
                    f"{column} refers to {columns[0]}, but {migration} does not depend "
                    f"on the migration that created it, so the reverse migration would "
                    f'miss it. Add ("{app_label}", "{last}") to its dependencies.'
                )


def _columns_in(state: Any) -> set[tuple[str, str]]:
    # A state without the app of a model has neither its table nor its columns.
    return {
        (model._meta.db_table, field.column)
        for model in state.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
    }


def _must_move(connection: Any, table: str, column: str) -> bool:
    """Whether a column exists, and is not just made, empty, as a text."""
    introspection, quote = connection.introspection, connection.ops.quote_name
    with connection.cursor() as cursor:
        for row in introspection.get_table_description(cursor, table):
            if row.name == column:
                kind = introspection.get_field_type(row.type_code, row)
                is_set = f"{quote(column)} IS NOT NULL"
                return kind != "CharField" or has_rows(connection, table, is_set)
    return False
