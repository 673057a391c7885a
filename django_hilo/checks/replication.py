"""Deploy check: ids without a node tag, on tables that two servers write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation.target import given_source
from django_hilo._database.dialects import dialect_of
from django_hilo._operations.table_scan import fields_on, gapless_fields, may_have_table
from django_hilo.checks.settings import error


def two_writers(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Refuse ids without a node tag where another server takes inserts as well."""
    models = _models_without_tags(connection.alias)
    if not models:
        return
    connection.ensure_connection()  # MySQL or MariaDB, the server says
    tables = dialect_of(connection).twice_written(connection)
    labels = [
        model._meta.label
        for model in models
        if tables is None or model._meta.db_table in tables
    ]
    if labels:
        yield error(
            f"On {connection.alias!r} the rows of {', '.join(labels)} are replicated "
            f"to and from another server, and their ids carry no node tag: both "
            f"servers would give the same.",
            "Give them a HiLoField, whose ids show the node tag; or let one server "
            "only take their inserts, and silence this check. What is left of a move "
            "to this server: DROP SUBSCRIPTION, on MariaDB RESET SLAVE ALL.",
            "E027",
        )


def _models_without_tags(alias: str) -> list[Any]:
    """Return the models of integer keys, gapless ids and other systems' counters."""
    fields = [
        field
        for field in fields_on(alias)
        if field.is_integer or given_source(field) is not None
    ]
    fields += [
        field for field in gapless_fields() if may_have_table(alias, field.model)
    ]
    return list(dict.fromkeys(field.model for field in fields))
