"""Statements that tests send by themselves."""

from typing import Any

from django.db import connections


def execute(sql: str, *parameters: Any, using: str = "default") -> list[Any]:
    """Run a statement; return the rows that it gives."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall()) if cursor.description else []


def last_key(table: str) -> int:
    """Return the last key that SQLite gave to a row of an empty table, 0 elsewhere.

    Tests that committed leave it.
    """
    if connections["default"].vendor != "sqlite":
        return 0
    found = execute("SELECT seq FROM sqlite_sequence WHERE name = %s", table)
    return int(found[0][0]) if found else 0
