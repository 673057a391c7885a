"""PostgreSQL's pipeline mode: it inserts rows while Python prepares the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

# Of one statement: few enough to be inserted soon, while the next is prepared.
ROWS = 2_000


def has_pipelines(connection: BaseDatabaseWrapper) -> bool:
    """Whether statements may be sent before those before them are answered.

    psycopg 3 does so with the client library of PostgreSQL 14 or later.
    """
    if connection.vendor != "postgresql":
        return False
    try:
        from psycopg import Connection, Pipeline
    except ImportError:
        return False
    connection.ensure_connection()
    return isinstance(connection.connection, Connection) and Pipeline.is_supported()


@contextmanager
def pipelined(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Send the block's statements without waiting for answers, in one transaction.

    What one of them raises comes from a later one, or from the end of the block.
    """
    with (
        transaction.atomic(connection.alias, savepoint=False),
        connection.wrap_database_errors,
        connection.connection.pipeline() as pipeline,
    ):
        yield
        # Not left to the end of the pipeline: that would raise for the statements
        # after the one that failed.
        pipeline.sync()
