"""Statements that tests send by themselves."""

from typing import Any

from django.db import connections


def execute(sql: str, *parameters: Any, using: str = "default") -> list[Any]:
    """Run a statement; return the rows that it gives."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall()) if cursor.description else []
