"""SQLite copies a table to alter it, and its default then goes on over the rows alone.

Ranges that processes hold reach further: `migrate` ends with the default over them.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

from django_hilo._allocation.target import resolve
from django_hilo._database.dialects import dialect_of
from django_hilo._operations.table_scan import fields_on
from django_hilo.models import HiLoDocument


def raise_defaults(using: str, **kwargs: Any) -> None:
    """Let the defaults of integer keys go on over all ranges (post_migrate)."""
    # A process that migrates nothing does without it.
    from django_hilo.sources.column import ColumnCounter

    connection = connections[using]
    if not dialect_of(connection).raises_key_default or not kwargs.get("plan"):
        return
    if HiLoDocument._meta.db_table not in connection.introspection.table_names():
        return
    for field in fields_on(using):
        target = resolve(field, using)
        if isinstance(target.source, ColumnCounter):
            target.source.raise_default(target.using)
