"""Counters of other systems that are wrong, at their end, or locked: clear errors."""

from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    ReservationTimeout,
    SourceMismatch,
    UnsafeSource,
)
from django_hilo.generator import next_number
from django_hilo.sources import (
    ForeignCounter,
    Row,
    database,
    doctrine,
    formulas,
    hibernate,
)
from tests.support import foreign
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.foreign import (
    drawn,
    needs_sequences,
    needs_server,
    next_value,
    partner,
    stored,
)
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make

SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}
MULTIPLE = hibernate.MultipleHiLo(9, "orders")
HILO = hibernate.HiLo(9)
INT4 = 2**31 - 1


def told(source: ForeignCounter) -> tuple[str, bool]:
    [fault] = source.faults("default")
    assert fault.remedy
    return fault.message, fault.is_certain


class TestRowsThatAreMissing:
    def test_with_a_start_and_a_unique_key_it_is_made(self, make):
        make(foreign.DBAL)
        source = doctrine.Table("orders")
        assert source.faults("default") == []
        assert source.read("default") == 0
        assert drawn(source, 5) == [1, 2, 3, 4, 5]
        assert execute("SELECT * FROM sequences") == [("orders", 5, 1)]

    def test_without_a_start(self, make):
        make(foreign.UNIQUE_KEY)
        with pytest.raises(SourceMismatch, match="no row. Let the partner create"):
            drawn(HILO)
        message, is_certain = told(HILO)
        assert "no row" in message
        assert not is_certain
        assert execute("SELECT * FROM hibernate_unique_key") == []

    @pytest.mark.parametrize(
        "statements",
        [
            [foreign.MULTIPLE],
            [
                foreign.MULTIPLE,
                "CREATE INDEX by_name ON hibernate_sequences (sequence_name)",
            ],
            [
                "CREATE TABLE hibernate_sequences (sequence_name varchar(255) "
                "NOT NULL, tenant int NOT NULL DEFAULT 0, "
                "sequence_next_hi_value int, PRIMARY KEY (sequence_name, tenant))"
            ],
        ],
        ids=["no index", "an index that is not unique", "one of more columns"],
    )
    def test_without_a_unique_key(self, make, statements):
        make(*statements)
        with pytest.raises(SourceMismatch, match="Insert it with 0 before any"):
            drawn(MULTIPLE)
        message, is_certain = told(MULTIPLE)
        assert "cannot be created safely" in message
        assert not is_certain
        assert execute("SELECT * FROM hibernate_sequences") == []


class TestRowsThatAreWrong:
    def test_two_rows(self, make):
        insert = "INSERT INTO hibernate_sequences VALUES ('orders', 3)"
        make(foreign.MULTIPLE, insert, insert)
        with pytest.raises(SourceMismatch, match="2 rows.*unique key"):
            drawn(MULTIPLE)
        assert "2 rows" in told(MULTIPLE)[0]
        with pytest.raises(SourceMismatch):
            MULTIPLE.raise_floor("default", 500)
        assert execute("SELECT sequence_next_hi_value FROM hibernate_sequences") == [
            (3,),
            (3,),
        ]

    def test_null(self, make):
        make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (NULL)")
        with pytest.raises(SourceMismatch, match="is NULL. Set it to"):
            drawn(HILO)
        assert "is NULL" in told(HILO)[0]

    def test_a_fixed_column_with_another_value(self, make):
        make(foreign.DBAL, "INSERT INTO sequences VALUES ('orders', 7, 5)")
        source = doctrine.Table("orders")
        with pytest.raises(
            UnsafeSource, match="sequence_increment_by is 5, but must be 1"
        ):
            drawn(source)
        message, is_certain = told(source)
        assert "sequence_increment_by is 5" in message
        assert is_certain
        with pytest.raises(UnsafeSource):
            source.read_max("default")
        assert stored("sequence_value FROM sequences") == 7

    @pytest.mark.skipif(IS_MYSQL, reason="test_source_processes has MyISAM")
    def test_an_update_that_changes_no_row(self, make):
        insert = "INSERT INTO hibernate_unique_key VALUES (3)"
        if CHOSEN == "sqlite":
            make(
                foreign.UNIQUE_KEY,
                insert,
                "CREATE TRIGGER other BEFORE UPDATE ON hibernate_unique_key "
                "WHEN new.next_hi <> old.next_hi BEGIN SELECT RAISE(IGNORE); END",
            )
        else:
            make(
                "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN RETURN NULL; END'",
                foreign.UNIQUE_KEY,
                insert,
                "CREATE TRIGGER other BEFORE UPDATE ON hibernate_unique_key "
                "FOR EACH ROW EXECUTE FUNCTION keep()",
            )
        with pytest.raises(ConcurrencyError, match="changed 100 times"):
            drawn(HILO)
        with pytest.raises(ConcurrencyError):
            HILO.raise_floor("default", 500)
        assert stored("next_hi FROM hibernate_unique_key") == 3


class TestEnds:
    @pytest.fixture
    def unique_key(self, make):
        make(foreign.UNIQUE_KEY)

        def store(number: int) -> None:
            execute("DELETE FROM hibernate_unique_key")
            execute("INSERT INTO hibernate_unique_key VALUES (%s)", number)

        return store

    @needs_server
    def test_the_columns_type(self, unique_key):
        unique_key(INT4)
        with pytest.raises(CounterExhausted, match=r"2147483648.*[Ww]iden it to big"):
            drawn(HILO)
        assert stored("next_hi FROM hibernate_unique_key") == INT4
        message, is_certain = told(HILO)
        assert f"is {INT4}; its type allows at most {INT4}" in message
        assert is_certain
        assert "Widen it to bigint" in HILO.faults("default")[0].remedy
        with pytest.raises(CounterExhausted):
            HILO.raise_floor("default", 2**40)
        assert stored("next_hi FROM hibernate_unique_key") == INT4

    @needs_server
    def test_what_still_fits_is_given(self, unique_key):
        unique_key(INT4 - 2)
        assert drawn(HILO, at_least=15) == [*range((INT4 - 2) * 10, INT4 * 10)]
        assert stored("next_hi FROM hibernate_unique_key") == INT4

    @needs_server
    def test_the_last_tenth_is_told(self, unique_key):
        unique_key(INT4 // 10 * 9 + 1)
        message, is_certain = told(HILO)
        assert "its type allows at most 2147483647" in message
        assert not is_certain
        unique_key(INT4 // 10 * 9)
        assert HILO.faults("default") == []

    def test_max_number(self, unique_key):
        source = hibernate.HiLo(9, max_number=75)
        unique_key(6)
        assert drawn(source) == [*range(60, 76)]
        unique_key(7)
        assert drawn(source) == [*range(70, 76)]
        before = stored("next_hi FROM hibernate_unique_key")
        with pytest.raises(CounterExhausted, match="max_number"):
            drawn(source)
        assert stored("next_hi FROM hibernate_unique_key") == before
        assert told(source)[1]

    @needs_sequences
    def test_a_sequence(self, make):
        make("CREATE SEQUENCE orders_seq INCREMENT BY 10 START WITH 921 MAXVALUE 950")
        source = hibernate.PooledLo(10, sequence="orders_seq")
        message = "the sequence orders_seq is 921; its type allows at most 950."
        assert told(source) == (message, False)
        assert drawn(source, 30) == [*range(921, 951)]
        with pytest.raises(CounterExhausted, match="exhausted.*[Ww]iden it"):
            drawn(source, 1)
        assert told(source)[1]


@needs_sequences
class TestSequences:
    def test_another_increment_gives_nothing(self, make):
        make("CREATE SEQUENCE orders_seq INCREMENT BY 5")
        source = hibernate.PooledLo(10, sequence="orders_seq")
        with pytest.raises(SourceMismatch, match="INCREMENT BY 5, .* has 10"):
            drawn(source)
        message, is_certain = told(source)
        assert "INCREMENT BY 5" in message
        assert is_certain
        assert next_value("orders_seq") == 1, "nothing was drawn"

    def test_one_that_is_altered_later(self, make):
        make("CREATE SEQUENCE orders_seq INCREMENT BY 10")
        source = hibernate.PooledLo(10, sequence="orders_seq")
        assert drawn(source) == [*range(1, 41)]
        execute("ALTER SEQUENCE orders_seq INCREMENT BY 50")
        with pytest.raises(SourceMismatch, match="INCREMENT BY 50, .* has 10"):
            drawn(source)

    def test_one_that_starts_anew_gives_nothing(self, make):
        make("CREATE SEQUENCE orders_seq MAXVALUE 40 CYCLE")
        source = database.Sequence("orders_seq")
        with pytest.raises(SourceMismatch, match="CYCLE.*NO CYCLE"):
            drawn(source)
        message, is_certain = told(source)
        assert "(CYCLE)" in message
        assert is_certain
        assert next_value("orders_seq") == 1, "nothing was drawn"


def test_there_are_no_sequences():
    if CHOSEN not in ("sqlite", "mysql"):
        pytest.skip("this one has them")
    source = database.Sequence("orders_seq")
    for operate in (
        lambda: drawn(source),
        lambda: source.read_max("default"),
        lambda: source.raise_floor("default", 5),
    ):
        with pytest.raises(
            SourceMismatch,
            match=f"{connection.display_name} has no sequences.*in a table",
        ):
            operate()
    assert told(source)[1]


class TestWhatIsMissing:
    def test_a_table(self):
        with pytest.raises(SourceMismatch, match=r"hibernate_unique_key.* is missing"):
            drawn(HILO)
        with pytest.raises(SourceMismatch, match="Let the partner create"):
            HILO.read_max("default")
        message, is_certain = told(HILO)
        assert message == "There is no table 'hibernate_unique_key' on 'default'."
        assert not is_certain

    def test_a_column(self, make):
        make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (3)")
        source = hibernate.HiLo(9, column="hi")
        with pytest.raises(SourceMismatch, match="no column hi, but has next_hi"):
            drawn(source)
        assert told(source)[1]
        assert stored("next_hi FROM hibernate_unique_key") == 3

    def test_a_column_of_the_key(self, make):
        make(foreign.ONE_ROW)
        source = ForeignCounter(
            Row("orders_seq", "next_val", key={"name": "orders"}), formulas.LastUsed(1)
        )
        assert "no column name" in told(source)[0]

    def test_a_column_of_another_type(self, make):
        make("CREATE TABLE hibernate_unique_key (next_hi varchar(20))")
        message, is_certain = told(HILO)
        assert "not an integer" in message
        assert is_certain

    @needs_sequences
    def test_a_sequence(self):
        source = database.Sequence("nowhere")
        with pytest.raises(SourceMismatch, match="nowhere"):
            drawn(source)
        message, is_certain = told(source)
        assert message == "There is no sequence 'nowhere' on 'default'."
        assert not is_certain


@needs_server
class TestLocks:
    def test_a_lock_of_another_is_waited_for_and_no_longer(self, make, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 1, "RETRY_FOR": 30}
        make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (3)")
        with partner() as alias, transaction.atomic(using=alias):
            lock = "SELECT next_hi FROM hibernate_unique_key FOR UPDATE"
            execute(lock, using=alias)
            with pytest.raises(ReservationTimeout, match="stayed locked"):
                next_number(HILO)
            with pytest.raises(ReservationTimeout):
                HILO.raise_floor("default", 500)
            assert HILO.read_max("default") == 29, "reading takes no lock"
        assert next_number(HILO) == 30

    def test_the_callers_own_lock_is_no_hang(self, make, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 1}
        make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (3)")
        with transaction.atomic():
            execute("UPDATE hibernate_unique_key SET next_hi = next_hi")
            with pytest.raises(ReservationTimeout, match="may be the one that asks"):
                next_number(HILO)
