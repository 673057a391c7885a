"""Counters of other systems, on tables and sequences as those systems make them."""

from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo.generator import next_number, next_numbers
from django_hilo.sources import (
    ForeignCounter,
    Row,
    database,
    django_sequences,
    doctrine,
    efcore,
    formulas,
    hibernate,
    marten,
    nhibernate,
)
from tests.support import foreign
from tests.support.foreign import (
    drawn,
    needs_postgresql,
    needs_sequences,
    next_value,
    stored,
)
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make

SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}
ONE_ROW: Any = {"table": "orders_seq"}
HI = "next_hi FROM hibernate_unique_key"
NEXT = "next_val FROM orders_seq"
NEXT_OF_SEGMENT = "next_val FROM hibernate_sequences WHERE sequence_name = 'orders'"
LEAF = ForeignCounter(
    Row("leaf_alloc", "max_id", key={"biz_tag": "orders"}), formulas.PooledLo(1)
)
TINY_ID = ForeignCounter(
    Row(
        "tiny_id_info",
        "max_id",
        key={"biz_type": "orders"},
        also="version = version + 1",
    ),
    formulas.LastUsed(1),
)
NHILO = ForeignCounter(
    Row("NHILO", "NEXT_HI", key={"ENTITY": "orders"}, start=1), formulas.HiLo(10)
)
if connection.vendor == "postgresql":
    # Unquoted names are folded there.
    NHILO = ForeignCounter(
        Row("nhilo", "next_hi", key={"entity": "orders"}, start=1), formulas.HiLo(10)
    )

# Source, statements, where its number is, ids of 32 or more, the number after.
ROWS: dict[str, tuple[Any, list[str], str, tuple[int, int], int]] = {
    "Hibernate's hilo": (
        hibernate.HiLo(9),
        [foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (0)"],
        HI,
        (1, 39),
        4,
    ),
    "MultipleHiLo": (
        hibernate.MultipleHiLo(9, "orders"),
        [foreign.MULTIPLE, "INSERT INTO hibernate_sequences VALUES ('orders', 7)"],
        "sequence_next_hi_value FROM hibernate_sequences",
        (70, 109),
        11,
    ),
    "enhanced hilo, segment": (
        hibernate.EnhancedHiLo(10, **SEGMENT),
        [foreign.SEGMENTS],
        NEXT_OF_SEGMENT,
        (1, 40),
        4,
    ),
    "pooled, one row": (
        hibernate.Pooled(10, **ONE_ROW),
        [foreign.ONE_ROW, "INSERT INTO orders_seq VALUES (1)"],
        NEXT,
        (1, 41),
        51,
    ),
    "pooled, segment": (  # of @TableGenerator(initialValue=99)
        hibernate.Pooled(10, initial_value=100, **SEGMENT),
        [foreign.SEGMENTS],
        NEXT_OF_SEGMENT,
        (100, 140),
        149,
    ),
    "pooled-lo, segment": (
        hibernate.PooledLo(10, **SEGMENT),
        [foreign.SEGMENTS],
        NEXT_OF_SEGMENT,
        (1, 32),
        32,
    ),
    "DBAL's TableGenerator": (
        doctrine.Table("orders"),
        [foreign.DBAL],
        "sequence_value FROM sequences WHERE sequence_increment_by = 1",
        (1, 32),
        32,
    ),
    "django-sequences": (
        django_sequences.Sequence("orders"),
        [foreign.DJANGO_SEQUENCES],
        "last FROM sequences_sequence WHERE name = 'orders'",
        (1, 32),
        32,
    ),
    "Leaf": (
        LEAF,
        [foreign.LEAF, "INSERT INTO leaf_alloc VALUES ('orders', 1, 2000)"],
        "max_id FROM leaf_alloc",
        (1, 32),
        33,
    ),
    "TinyID": (
        TINY_ID,
        [foreign.TINY_ID, "INSERT INTO tiny_id_info VALUES (1, 'orders', 1, 5)"],
        "max_id FROM tiny_id_info WHERE version = 6",
        (2, 33),
        33,
    ),
    "NHiLo": (NHILO, [foreign.NHILO], "NEXT_HI FROM NHILO", (10, 49), 5),
}
# Source, statement, name for SQL, ids of 32 or more, what the next one draws.
SEQUENCES: dict[str, tuple[Any, str, str, tuple[int, int], int]] = {
    "seqhilo": (
        hibernate.SequenceHiLo(9),
        "CREATE SEQUENCE hibernate_sequence",
        "hibernate_sequence",
        (10, 49),
        5,
    ),
    "pooled": (
        hibernate.Pooled(10, sequence="orders_seq"),
        "CREATE SEQUENCE orders_seq START WITH 1 INCREMENT BY 10",
        "orders_seq",
        (1, 31),
        41,
    ),
    "Doctrine": (
        doctrine.Sequence("doc_seq", 5),
        "CREATE SEQUENCE doc_seq INCREMENT BY 5 MINVALUE 1 START WITH 1",
        "doc_seq",
        (1, 35),
        36,
    ),
    "with a cache": (
        database.Sequence("plain"),
        "CREATE SEQUENCE plain CACHE 20",
        "plain",
        (1, 32),
        33,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(make, name):
    source, statements, place, (low, high), after = ROWS[name]
    make(*statements)
    assert source.faults("default") == []
    assert source.read_max("default") < low

    assert drawn(source) == [*range(low, high + 1)]
    assert stored(place) == after
    assert source.read_max("default") in (high, high - 1 + source.formula.block)
    assert drawn(source, 1)[0] == high + 1
    assert source.faults("default") == []


@needs_sequences
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(make, name):
    source, statement, sequence, (low, high), after = SEQUENCES[name]
    make(statement)
    assert source.faults("default") == []
    assert source.read_max("default") < low
    assert drawn(source) == [*range(low, high + 1)]
    assert source.read_max("default") >= high
    assert next_value(sequence) == after
    assert drawn(source, 1)[0] > high


@needs_postgresql
def test_names_with_schemas_and_capitals(make):
    make(
        "CREATE SCHEMA billing",
        'CREATE SEQUENCE billing."EntityFrameworkHiLoSequence" INCREMENT BY 10',
        'CREATE TABLE billing."Counters" ("Name" text PRIMARY KEY, "Value" bigint)',
        'CREATE SEQUENCE "EntityFrameworkHiLoSequence" INCREMENT BY 10 START 501',
    )
    source = efcore.Sequence(schema="billing")
    assert source.faults("default") == []
    assert drawn(source) == [*range(1, 41)]
    assert drawn(efcore.Sequence(), 1) == [*range(501, 511)]
    source.raise_floor("default", 5000)
    assert drawn(source, 1)[0] > 5000
    row = Row("billing.Counters", "Value", key={"Name": "orders"}, start=0)
    counter = ForeignCounter(row, formulas.LastUsed(1))
    assert counter.faults("default") == []
    assert drawn(counter) == [*range(1, 33)]
    assert stored('"Value" FROM billing."Counters"') == 32


@needs_postgresql
def test_a_schema_with_a_dot_is_quoted(make):
    schema = '"bill.ing"'
    make(
        'CREATE SCHEMA "bill.ing"',
        'CREATE SEQUENCE "bill.ing"."EntityFrameworkHiLoSequence" INCREMENT BY 10',
        'CREATE TABLE "bill.ing".mt_hilo (entity_name text PRIMARY KEY, hi_value int)',
    )
    for source in efcore.Sequence(schema=schema), marten.HiLo("orders", schema=schema):
        assert source.faults("default") == []
        assert drawn(source, 1)[0] == 1
        assert "bill.ing" in source.name


class TestWhere:
    @pytest.fixture(autouse=True)
    def two_rows(self, make):
        make(
            "CREATE TABLE hilo (entity varchar(20), next_hi int)",
            "INSERT INTO hilo VALUES ('a', 1)",
            "INSERT INTO hilo VALUES ('b', 5)",
        )

    @pytest.mark.parametrize("where", ["entity = 'a'", "entity LIKE 'a%'"])
    def test_it_names_the_row(self, where):
        source = nhibernate.HiLo(4, table="hilo", where=where)
        assert source.faults("default") == []
        assert drawn(source, 1) == [5, 6, 7, 8, 9]
        assert stored("next_hi FROM hilo WHERE entity = 'a'") == 2
        assert stored("next_hi FROM hilo WHERE entity = 'b'") == 5
        source.raise_floor("default", 99)
        assert stored("next_hi FROM hilo WHERE entity = 'a'") == 20
        assert stored("next_hi FROM hilo WHERE entity = 'b'") == 5

    def test_with_or(self):
        source = nhibernate.HiLo(4, table="hilo", where="entity = 'x' OR entity = 'a'")
        assert drawn(source, 1)[0] == 5
        assert stored("next_hi FROM hilo WHERE entity = 'b'") == 5


@needs_postgresql
class TestMarten:
    @pytest.fixture(autouse=True)
    def function(self, make):
        make(foreign.MARTEN)

    def test_it_counts_with_the_function(self):
        source = marten.HiLo("Order", max_lo=10)
        assert source.faults("default") == []
        assert drawn(source) == [*range(1, 41)]
        assert stored("hi_value FROM mt_hilo WHERE entity_name = 'Order'") == 3
        assert execute("SELECT mt_get_next_hi('Order')") == [(4,)]
        assert drawn(source, 1) == [*range(51, 61)]
        assert source.read_max("default") == 60

    def test_a_floor_is_written_to_its_row(self):
        source = marten.HiLo("Order", max_lo=10)
        source.raise_floor("default", 95)
        source.raise_floor("default", 20)
        assert stored("hi_value FROM mt_hilo") == 9
        assert drawn(source, 1, minimum=95) == [*range(101, 111)]
        assert drawn(source, 1, minimum=1000) == [*range(1001, 1011)]


class TestRollback:
    """A range is committed before its numbers are used, except on SQLite."""

    def in_a_transaction_that_rolls_back(self, source: ForeignCounter) -> list[int]:
        with transaction.atomic():
            execute("DELETE FROM records_order")
            numbers = next_numbers(source, 35)
            transaction.set_rollback(True)
        return numbers

    @pytest.mark.parametrize("name", ["Hibernate's hilo", "pooled, segment"])
    def test_rows(self, make, name):
        source, statements, _, (low, _), _ = ROWS[name]
        make(*statements)
        lost = self.in_a_transaction_that_rolls_back(source)
        assert lost == [*range(low, low + 35)]
        assert next_number(source) >= low + 35

    @needs_sequences
    @pytest.mark.parametrize("name", ["pooled", "with a cache"])
    def test_sequences(self, make, name):
        source, statement, _, (low, _), _ = SEQUENCES[name]
        make(statement)
        lost = self.in_a_transaction_that_rolls_back(source)
        assert lost == [*range(low, low + 35)]
        # PostgreSQL's cache is lost with the session that had it.
        cached = name == "with a cache" and connection.vendor == "postgresql"
        assert next_number(source) == (41 if cached else low + 35)
