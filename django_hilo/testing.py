"""Predictable ids in the tests of a project.

Each test begins like a new process: without ranges in memory, and with counters at the
last number that was used before the test.
"""

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from unittest import TestCase
from unittest.mock import patch

from django.core.management.color import no_style
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

# The stubs of Django lack it.
from django.test.testcases import (  # type: ignore[attr-defined]
    DatabaseOperationForbidden,
)

from django_hilo._allocation import bound_ranges, pool
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.pool import CounterKey
from django_hilo._allocation.target import given_source
from django_hilo._database.dialects import dialect_of
from django_hilo._database.identity import database_key
from django_hilo._operations.locations import aliases, fields_on
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.returning import return_range
from django_hilo.exceptions import RangeNotReturned

if TYPE_CHECKING:
    _Base = TestCase
else:
    _Base = object


class HiLoTestMixin(_Base):
    """Start ids at ``orders/1-A`` in every test, or after those of ``setUpTestData()``.

    List it before Django's test case: ``class OrderTests(HiLoTestMixin, TestCase)``.
    After it the mixin would have no effect, so such a class raises TypeError.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        order = cls.__mro__
        if TestCase in order and order.index(TestCase) < order.index(HiLoTestMixin):
            raise TypeError(
                f"{cls.__name__} lists HiLoTestMixin after its TestCase, where it has "
                f"no effect. Write: class {cls.__name__}(HiLoTestMixin, ...)."
            )

    @classmethod
    def setUpClass(cls) -> None:
        """Start ids over for ``setUpTestData()``, in its transaction."""
        make = getattr(cls, "setUpTestData", None)
        if make is None:
            super().setUpClass()
            return

        def start_and_make() -> None:
            # Ignored: the test case that this is mixed into has them.
            _start_over(cls.databases)  # type: ignore[attr-defined]
            make()

        # A class that has its own need not call another.
        with patch.object(cls, "setUpTestData", start_and_make):
            super().setUpClass()

    # Not setUp(): a class that has its own need not call this one. Nor run(): errors in
    # there end the whole run of tests, and tests that are skipped reach it.
    def _callSetUp(self) -> None:  # noqa: N802 - unittest's
        _start_over(getattr(self, "databases", ()))
        super()._callSetUp()  # type: ignore[misc]  # typeshed lacks it


def __getattr__(name: str) -> Any:
    """Make the pytest fixture ``hilo_ids`` when it is imported, and import pytest."""
    if name != "hilo_ids":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    pytest = import_module("pytest")
    return globals().setdefault(name, pytest.fixture(_hilo_ids))


def _hilo_ids(db: None) -> None:
    """Start ids at ``orders/1-A`` in this test, or after those of existing rows."""
    _start_over(aliases())


def _start_over(databases: Iterable[str]) -> None:
    """Forget all ranges, and start the counters of these databases over."""
    for alias in aliases():
        if alias in databases:
            with suppress(DatabaseOperationForbidden):  # not one of this test's
                _rewind(alias)
        pool.current().forget(alias)


def _rewind(using: str) -> None:
    """Return the unused numbers that the open transaction has reserved.

    They are those of setUpTestData(). Otherwise the first id of a test would depend on
    the tests that ran before.
    """
    newest = bound_ranges.drain(connections[using])
    for cached in newest.values():
        reserved = cached.reservation
        if not reserved.ticket:
            continue  # other systems take nothing back
        with suppress(RangeNotReturned):  # an explicit id raised Max
            return_range(
                reserved.collection,
                reserved.range.high,
                cached.next - 1,
                reserved.ticket,
                node_tag=reserved.node_tag,
                using=using,
            )
    _rewind_columns(using, newest)


def _rewind_columns(using: str, newest: dict[CounterKey, CachedRange]) -> None:
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
    for field in fields:
        alias, source = field.counter_of(using)
        cached = newest.get(CounterKey(database_key(alias), *source.key))
        if cached is not None and not cached.reservation.ticket:
            source.raise_floor(alias, cached.next - 1)


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
