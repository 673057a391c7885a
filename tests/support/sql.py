"""Statements that tests send by themselves, and tables that are not there."""

from typing import Any

import pytest
from django.db import connections
from django.db.models import Model


def execute(sql: str, *parameters: Any, using: str = "default") -> list[Any]:
    """Run a statement; return the rows that it gives."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall()) if cursor.description else []


def hide_table(model: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let statements look for the rows of a model in a table that is not there."""
    for field in model._meta.concrete_fields:
        # Django keeps it, with the name of its table: let it be the right one.
        field.cached_col  # noqa: B018 - looked at only to be kept
    monkeypatch.setattr(model._meta, "db_table", "no_such_table")
