"""Start counters over, between tests that commit."""

from collections.abc import Iterable
from contextlib import suppress

from django.core.management.color import no_style
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

# The stubs of Django lack it.
from django.test.testcases import (  # type: ignore[attr-defined]
    DatabaseOperationForbidden,
)

from django_hilo._allocation import memory
from django_hilo._allocation.in_tests import block_on
from django_hilo._allocation.in_transaction import drop_bound
from django_hilo._allocation.registry import given_source
from django_hilo._database.dialects import dialect_of
from django_hilo._operations.locations import aliases, fields_on
from django_hilo.counters.key_column import KeyColumn
from django_hilo.sources.key_sequence import KeySequence


def start_over(databases: Iterable[str]) -> None:
    """Start the counters of these databases over, and forget the ranges of all."""
    for alias in aliases():
        connection = connections[alias]
        if alias in databases:
            with suppress(DatabaseOperationForbidden):  # not one of this test's
                _rewind_columns(alias)
        if block_on(connection) is None:
            memory.current().forget(alias)
            continue
        # Threads beside the test must not get numbers of its class.
        memory.current().forget_rows(alias)
        for held in memory.current().memories(alias):
            drop_bound(held)
            if isinstance(held.source, KeySequence):
                memory.current().forget_one(held.key)


def _rewind_columns(using: str) -> None:
    """Start integer keys over, whose numbers come from the database's own counter.

    PostgreSQL's sequences do not roll back. MariaDB's AUTO_INCREMENT does not either,
    but changing it would commit.
    """
    connection = connections[using]
    fields = [
        field
        for field in fields_on(using)
        if field.is_integer
        and given_source(field) is None
        and field.model._meta.can_migrate(connection)
    ]
    if not fields:
        return
    reset: list[tuple[str, list[str] | None]]
    dialect = dialect_of(connection)
    if dialect.draws_keys_from_sequence:
        statements, names = [], []
        for field in fields:
            key = KeyColumn(field.model._meta.db_table, field.column)
            statements.append(_reset_sql(key, connection))
            names += [connection.ops.quote_name(key.table), key.column]
        # One round trip for all models.
        reset = [(" UNION ALL ".join(statements), names)]
    elif dialect.raises_key_default:
        columns = [{"table": field.model._meta.db_table} for field in fields]
        sql = connection.ops.sequence_reset_by_name_sql(no_style(), columns)
        reset = [(statement, None) for statement in sql]
    else:
        return
    with connection.cursor() as cursor:
        for statement, params in reset:
            cursor.execute(statement, params)


def _reset_sql(key: KeyColumn, connection: BaseDatabaseWrapper) -> str:
    """Return the SQL that sets a sequence of PostgreSQL to the highest key.

    Django's own fails if all keys are under the first number of the sequence.
    """
    quote = connection.ops.quote_name
    table, column = (quote(name).replace("%", "%%") for name in key)
    return (
        f"SELECT setval(seqrelid::regclass, greatest(top, seqstart), "  # noqa: S608 - quoted
        f"coalesce(top >= seqstart, false)) "
        f"FROM (SELECT max({column}) AS top FROM {table}) AS keys, "
        f"pg_catalog.pg_sequence "
        f"WHERE seqrelid = pg_get_serial_sequence(%s, %s)::regclass"
    )
