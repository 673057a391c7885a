"""Predictable ids in the tests of a project.

A `TestCase` needs only `write_counters`, and only for raw SQL. The mixin and the
fixture also start ids over in tests that commit, and the keys of sequences: each test
begins like a new process, with counters at the last number that was used before.
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

from django_hilo._allocation import memory
from django_hilo._allocation.in_tests import write_counters
from django_hilo._allocation.in_transaction import drop_bound
from django_hilo._allocation.registry import given_source
from django_hilo._database.dialects import dialect_of
from django_hilo._database.transaction import test_blocks
from django_hilo._operations.locations import aliases, fields_on
from django_hilo.counters.key_column import KeyColumn
from django_hilo.sources.key_sequence import KeySequence

# Not hilo_ids, which needs pytest.
__all__ = ["HiLoTestMixin", "write_counters"]

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

    # The last numbers that setUpTestData() drew, by sequence and alias: objects that it
    # did not save may have them.
    _drawn: dict[tuple[KeySequence, str], int] = {}

    @classmethod
    def setUpClass(cls) -> None:
        """Start ids over for ``setUpTestData()``, in its transaction."""
        make = getattr(cls, "setUpTestData", None)
        if make is None:
            super().setUpClass()
            return

        def start_and_make() -> None:
            # Ignored: the test case that this is mixed into has them.
            start_over(cls.databases)  # type: ignore[attr-defined]
            make()

        cls._drawn = {}
        # A class that has its own need not call another.
        with patch.object(cls, "setUpTestData", start_and_make):
            super().setUpClass()
        for each in memory.current().memories():
            if isinstance(each.source, KeySequence):
                last = each.newest.next - 1 if each.newest else each.seen
                cls._drawn[each.source, each.database.alias] = last

    # Not setUp(): a class that has its own need not call this one. Nor run(): errors in
    # there end the whole run of tests, and tests that are skipped reach it.
    def _callSetUp(self) -> None:  # noqa: N802 - unittest's
        start_over(getattr(self, "databases", ()))
        for (source, alias), number in self._drawn.items():
            source.raise_floor(alias, number)
        super()._callSetUp()  # type: ignore[misc]  # typeshed lacks it


def __getattr__(name: str) -> Any:
    """Return the pytest fixture ``hilo_ids``, for a ``conftest.py`` that imports it."""
    if name != "hilo_ids":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("django_hilo.pytest_plugin").hilo_ids


def start_over(databases: Iterable[str]) -> None:
    """Start the counters of these databases over, and forget the ranges of all."""
    for alias in aliases():
        connection = connections[alias]
        if alias in databases:
            with suppress(DatabaseOperationForbidden):  # not one of this test's
                _rewind_columns(alias)
        if not test_blocks(connection):
            memory.current().forget(alias)
            continue
        # Threads beside the test must not get numbers of its class.
        memory.current().drop_ranges(alias)
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
