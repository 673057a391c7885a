"""Rows and functions of others: what their columns take, and how they are named."""

from typing import Any

import pytest
from django.db import connection
from django.db.backends.signals import connection_created

from django_hilo.exceptions import CounterExhausted, SourceMismatch
from django_hilo.sources import ForeignCounter, Row, database, formulas
from django_hilo.sources.storages import catalog
from tests.support import foreign
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.foreign import drawn, needs_postgresql, needs_sequences, stored
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make


def counter(column: str = "v", **given: Any) -> ForeignCounter:
    return ForeignCounter(Row("counters", column, **given), formulas.LastUsed(1))


class TestColumnsThatCut:
    @pytest.fixture
    def not_strict(self, receive):
        if not IS_MYSQL:
            pytest.skip("MariaDB's mode")

        def loosen(connection: Any, **_: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = ''")

        # Counters have a connection of their own there.
        connection.close()
        receive(connection_created, loosen)
        yield
        connection.close()

    @pytest.mark.parametrize(
        ("kind", "last"),
        [("tinyint", 127), ("decimal(5,0)", 99999), ("INT", 2**31 - 1)],
    )
    def test_mariadb_that_is_not_strict(self, make, not_strict, kind, last):
        make(
            f"CREATE TABLE counters (V {kind})",
            f"INSERT INTO counters VALUES ({last - 1})",
        )
        source = counter()
        assert drawn(source) == [last]
        for _ in range(2):
            with pytest.raises(
                CounterExhausted, match=f"the column stored {last} instead"
            ):
                drawn(source)
        with pytest.raises(CounterExhausted):
            source.raise_floor("default", last + 5)
        assert stored("V FROM counters") == last
        [fault] = source.faults("default")
        assert f"its type allows at most {last}" in fault.message

    @pytest.mark.skipif(not IS_MYSQL, reason="an engine of MariaDB's")
    def test_another_that_writes_meanwhile(self, make, monkeypatch):
        make(
            "CREATE TABLE counters (V bigint) ENGINE=MyISAM",
            "INSERT INTO counters VALUES (1)",
        )
        write = Row._update

        def followed(*args: Any) -> int:
            changed = write(*args)
            execute("UPDATE counters SET V = V + 7")
            return changed

        monkeypatch.setattr(Row, "_update", followed)
        assert drawn(counter(), 1) == [2]
        assert drawn(counter(), 1) == [10]

    @pytest.mark.skipif(CHOSEN != "sqlite", reason="a trigger of SQLite's")
    def test_a_trigger(self, make):
        make(
            "CREATE TABLE counters (v int)",
            "INSERT INTO counters VALUES (98)",
            "CREATE TRIGGER cut AFTER UPDATE ON counters WHEN new.v > 99 "
            "BEGIN UPDATE counters SET v = 99; END",
        )
        assert drawn(counter()) == [99]
        with pytest.raises(CounterExhausted, match="stored 99 instead"):
            drawn(counter())


class TestValuesThatAreNoNumbers:
    @pytest.mark.parametrize(
        ("kind", "value"),
        [("varchar(20)", "'5'"), ("double precision", "1.5"), ("numeric(12,3)", "2.5")],
    )
    def test_they_are_told_at_once(self, make, kind, value):
        make(
            f"CREATE TABLE counters (v {kind})",
            f"INSERT INTO counters VALUES ({value})",
        )
        for operate in (
            lambda: drawn(counter()),
            lambda: counter().read_max("default"),
            lambda: counter().raise_floor("default", 500),
        ):
            with pytest.raises(SourceMismatch, match="not an integer"):
                operate()

    def test_whole_decimals_are(self, make):
        make(
            "CREATE TABLE counters (v decimal(19,0))", "INSERT INTO counters VALUES (5)"
        )
        assert drawn(counter(), 3) == [6, 7, 8]
        assert counter().faults("default") == []


class TestNames:
    def test_percent_signs(self):
        quote = connection.ops.quote_name
        table, column = quote("a%b"), quote("h%s")
        key = quote("k%")
        execute(f"CREATE TABLE {table} ({column} int, {key} varchar(9), note text)")
        try:
            execute(f"INSERT INTO {table} VALUES (2, 'x', 'a')")
            row = Row("a%b", "h%s", key={"k%": "x"}, also="note = '5%s'")
            source = ForeignCounter(row, formulas.LastUsed(1))
            assert source.faults("default") == []
            assert drawn(source, 3) == [3, 4, 5]
            assert execute(f"SELECT note FROM {table}") == [("5%s",)]
        finally:
            execute(f"DROP TABLE {table}")

    @needs_sequences
    def test_percent_signs_of_a_sequence(self):
        name = connection.ops.quote_name("s%q")
        execute(f"CREATE SEQUENCE {name}")
        try:
            source = database.Sequence("s%q")
            assert source.faults("default") == []
            assert drawn(source, 3) == [1, 2, 3]
            source.raise_floor("default", 5_000_000)
            assert drawn(source, 1) == [5_000_001]
        finally:
            execute(f"DROP SEQUENCE {name}")

    def test_dots_in_quotes(self):
        quote = connection.ops.quote_name
        table, column = quote("a.b"), quote("h.i")
        execute(f"CREATE TABLE {table} ({column} int, k int PRIMARY KEY)")
        try:
            row = Row('"a.b"', '"h.i"', key={"k": 1}, start=0)
            source = ForeignCounter(row, formulas.LastUsed(1))
            assert source.faults("default") == []
            assert drawn(source, 3) == [1, 2, 3]
            assert source.faults("default") == []
        finally:
            execute(f"DROP TABLE {table}")

    @pytest.mark.skipif(CHOSEN == "postgres", reason="it knows case")
    def test_columns_have_no_case(self, make):
        make("CREATE TABLE counters (V int, Name varchar(9) PRIMARY KEY)")
        source = counter("v", key={"NAME": "x"}, start=0)
        assert source.faults("default") == []
        assert drawn(source, 2) == [1, 2]
        assert source.faults("default") == []

    @pytest.mark.skipif(IS_MYSQL, reason="schemas are databases there")
    def test_with_a_schema(self, make):
        make("CREATE TABLE hu (v int, k int UNIQUE)")
        schema = "main" if CHOSEN == "sqlite" else "public"
        row = Row(f"{schema}.hu", "v", key={"k": 1}, start=0)
        source = ForeignCounter(row, formulas.LastUsed(1))
        assert source.faults("default") == []
        assert drawn(source, 2) == [1, 2]

    @needs_postgresql
    def test_domains_count_as_what_they_are_of(self, make):
        execute("CREATE DOMAIN hilo_did AS int")
        try:
            make(
                "CREATE TABLE counters (v hilo_did)", "INSERT INTO counters VALUES (1)"
            )
            assert counter().faults("default") == []
            execute("UPDATE counters SET v = 2147483647")
            assert "allows at most 2147483647" in counter().faults("default")[0].message
            execute("DROP TABLE counters")
        finally:
            execute("DROP DOMAIN hilo_did")

    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            ("a", ["a"]),
            ("s.a", ["s", "a"]),
            ('"s.t".a', ["s.t", "a"]),
            ('s."A""b"', ["s", 'A"b']),
        ],
    )
    def test_parts(self, name, parts):
        assert catalog.split_name(name) == parts


def test_max_number_is_the_limit_that_comes_first(make):
    make("CREATE TABLE counters (v int)", "INSERT INTO counters VALUES (10)")
    source = ForeignCounter(Row("counters", "v"), formulas.LastUsed(1, 10))
    [fault] = source.faults("default")
    assert fault.message == "counters.v has given ids up to 10; max_number is 10."
    assert "raise max_number" in fault.remedy
