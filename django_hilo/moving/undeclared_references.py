"""References of installed models that the state of the migration does not have."""

from __future__ import annotations

from typing import Any

from django.apps import apps as installed

from django_hilo.exceptions import HiLoError
from django_hilo.moving.relations import Column, is_ours


def check_references(columns: list[Column], connection: Any) -> None:
    """Raise `HiLoError` for a column that contains the key, and is not in the state.

    References with a constraint are in the database's catalogue too.
    """
    state = columns[0].new.model._meta.apps
    # A state without the app of a model has neither its table nor its columns.
    known = {
        (model._meta.db_table, field.column)
        for model in state.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
    }
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
                    f"{model._meta.label}.{field.name} refers to {columns[0]}, and "
                    f"the state of this migration does not have it. Add the migration "
                    f"that made it to the dependencies of this one; an app without "
                    f"migrations needs some first."
                )


def _must_move(connection: Any, table: str, column: str) -> bool:
    """Whether a column exists, and is not just made, empty, as a text."""
    introspection, quote = connection.introspection, connection.ops.quote_name
    with connection.cursor() as cursor:
        for row in introspection.get_table_description(cursor, table):
            if row.name == column:
                kind = introspection.get_field_type(row.type_code, row)
                cursor.execute(
                    f"SELECT 1 FROM {quote(table)} "
                    f"WHERE {quote(column)} IS NOT NULL LIMIT 1"
                )
                return kind != "CharField" or cursor.fetchone() is not None
    return False
