"""Statements of a ``TestCase`` that ``assertNumQueries()`` does not count."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.transaction import test_blocks


@contextmanager
def uncounted(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Hide the statements of the block in a TestCase; elsewhere, do nothing."""
    before: dict[str, Any] = {}
    if test_blocks(connection.atomic_blocks):
        for name in "queries_log", "execute_wrappers", "force_debug_cursor":
            before[name] = getattr(connection, name)
            # Empty ones, and False.
            vars(connection)[name] = type(before[name])()
    try:
        yield
    finally:
        vars(connection).update(before)
