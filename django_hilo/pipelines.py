"""PostgreSQL's pipeline mode: it inserts rows while Python prepares the next ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    from psycopg import Pipeline

# Of one statement: few enough to be inserted soon, while the next is prepared.
ROWS = 2_000
# Statements that may be under way: the client library keeps what it cannot send yet.
AHEAD = 16

_OURS = ("django.db.models.", "django.contrib.", "django_hilo.")


def may_pipeline(
    connection: BaseDatabaseWrapper, fields: Iterable[models.Field[Any, Any]]
) -> bool:
    """Whether rows of these fields may be sent before those before them are answered.

    psycopg 3 does so with the client library of PostgreSQL 14 or later. Not where code
    that is not ours might use the connection in between, such as a field's
    ``pre_save()`` or a wrapper of statements: counts of rows and errors come later.
    """
    if connection.vendor != "postgresql" or connection.execute_wrappers:
        return False
    try:
        from psycopg import Connection, Pipeline
    except ImportError:
        return False
    connection.ensure_connection()
    return (
        isinstance(connection.connection, Connection)
        and Pipeline.is_supported()
        and all(map(_is_plain, fields))
    )


def _is_plain(field: models.Field[Any, Any]) -> bool:
    # Files are written where they are kept, which may be a database.
    known = type(field).__module__.startswith(_OURS)
    return known and not isinstance(field, models.FileField)


@contextmanager
def pipelined(connection: BaseDatabaseWrapper) -> Iterator[Pipeline]:
    """Send the block's statements without waiting for answers, in one transaction.

    What one of them raises comes from a later one, or from ``sync()``. That is to be
    called before the end, which would raise for what came after the one that failed.
    """
    with (
        transaction.atomic(connection.alias, savepoint=False),
        connection.wrap_database_errors,
        connection.connection.pipeline() as pipeline,
    ):
        yield pipeline
