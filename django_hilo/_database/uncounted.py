"""Statements of a ``TestCase`` that ``assertNumQueries()`` does not count."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.transaction import test_blocks


@contextmanager
def uncounted(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Hide the statements of the block in a TestCase; elsewhere, do nothing."""
    hidden: dict[str, Any] = {}
    if test_blocks(connection):
        hidden = {
            "queries_log": deque(),
            "execute_wrappers": [],
            "force_debug_cursor": False,
        }
    before = {name: getattr(connection, name) for name in hidden}
    vars(connection).update(hidden)
    try:
        yield
    finally:
        vars(connection).update(before)
