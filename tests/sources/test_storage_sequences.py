"""Sequences that are altered, at their end, locked, or of another owner."""

import os
from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo.exceptions import CounterExhausted, ReservationTimeout, SourceMismatch
from django_hilo.sources import database, efcore, hibernate
from django_hilo.sources.storages import Sequence
from django_hilo.sources.storages.mariadb import MariaDB
from django_hilo.sources.storages.postgresql import PostgreSQL
from tests.support import foreign
from tests.support.databases import CHOSEN
from tests.support.foreign import (
    drawn,
    needs_postgresql,
    needs_sequences,
    next_value,
    partner,
)
from tests.support.patience import wait_until
from tests.support.sql import execute
from tests.support.threads import begin

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make

SEQUENCE = database.Sequence("orders_seq")


def state_of(sequence: str) -> Any:
    return Sequence(sequence)._sql(connection).state(connection)


def a_session_waits() -> bool:
    return bool(
        execute(
            "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE NOT granted AND datname = current_database()"
        )
    )


@needs_sequences
class TestAlteredWhileDrawn:
    @needs_postgresql
    @pytest.mark.parametrize("change", ["INCREMENT BY 1", "MAXVALUE 1000 CYCLE"])
    def test_a_commit_that_the_draw_waited_for(self, make, settings, change):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 60}
        make("CREATE SEQUENCE orders_seq INCREMENT BY 10")
        source = database.Sequence("orders_seq", 10)
        with partner() as alias:
            with transaction.atomic(using=alias):
                execute(f"ALTER SEQUENCE orders_seq {change}", using=alias)
                draw = begin(lambda: drawn(source))
                wait_until(a_session_waits)
            with pytest.raises(SourceMismatch, match="ids would be given twice"):
                draw()

    @pytest.mark.parametrize("change", [{"increment": 1}, {"cycles": True}])
    def test_what_it_is_after_the_draw_counts(self, make, monkeypatch, change):
        make("CREATE SEQUENCE orders_seq INCREMENT BY 10")
        kind = PostgreSQL if CHOSEN == "postgres" else MariaDB
        before = state_of("orders_seq")
        states = iter([before, before._replace(**change)])
        monkeypatch.setattr(kind, "state", lambda *_: next(states))
        with pytest.raises(SourceMismatch, match="ids would be given twice"):
            drawn(database.Sequence("orders_seq", 10))


@pytest.mark.skipif(CHOSEN != "mariadb", reason="only MariaDB has it")
def test_steps_of_the_server(make):
    make("CREATE SEQUENCE orders_seq INCREMENT BY 0")
    source = database.Sequence("orders_seq", 10)
    remedy = "ALTER SEQUENCE ... INCREMENT BY 10 NOCACHE"
    with pytest.raises(SourceMismatch, match=rf"auto_increment_.* Run: {remedy}\."):
        drawn(source)
    execute(remedy.replace("...", "orders_seq"))
    assert drawn(source, 20) == [*range(1, 21)]


@needs_sequences
class TestTheEndOfASequence:
    @pytest.fixture(autouse=True)
    def sequence(self, make):
        make("CREATE SEQUENCE orders_seq MAXVALUE 100")
        assert next_value("orders_seq") == 1
        name = "'orders_seq'" if CHOSEN == "postgres" else "orders_seq"
        execute(f"SELECT setval({name}, 95)")

    def test_what_is_left_is_given(self):
        given = drawn(SEQUENCE)
        while len(given) < 5:  # one by one out of MariaDB's cache
            given += drawn(SEQUENCE)
        assert given == [96, 97, 98, 99, 100]
        with pytest.raises(CounterExhausted, match="is exhausted"):
            drawn(SEQUENCE)

    def test_a_floor_over_it_draws_nothing(self):
        with pytest.raises(
            CounterExhausted, match="would become 501, but its limit is 100"
        ):
            SEQUENCE.raise_floor("default", 500)
        assert next_value("orders_seq") == 96

    @needs_postgresql
    def test_too_few_stay_for_others(self):
        with pytest.raises(CounterExhausted, match="fewer than 6 values are left"):
            drawn(SEQUENCE, at_least=6)
        assert next_value("orders_seq") == 96
        assert drawn(SEQUENCE, at_least=4) == [97, 98, 99, 100]


@needs_postgresql
class TestRights:
    @pytest.fixture(autouse=True)
    def role(self, make):
        name = f"hilo_guest_{os.getpid()}"
        make("CREATE SEQUENCE orders_seq")
        execute(f"CREATE ROLE {name}")
        execute(f"GRANT USAGE ON SEQUENCE orders_seq TO {name}")
        execute(f"SET ROLE {name}")
        yield name
        execute("RESET ROLE")
        execute(f"DROP OWNED BY {name}")
        execute(f"DROP ROLE {name}")

    def test_usage_is_enough(self):
        assert SEQUENCE.faults("default") == []
        assert drawn(SEQUENCE) == [*range(1, 33)]
        assert SEQUENCE.read_max("default") == 32

    def test_what_nobody_drew_cannot_be_read_by_usage(self, role):
        execute("RESET ROLE")
        execute("ALTER SEQUENCE orders_seq RESTART WITH 700")
        execute(f"SET ROLE {role}")
        with pytest.raises(SourceMismatch, match="GRANT SELECT ON SEQUENCE orders_seq"):
            SEQUENCE.read_max("default")
        SEQUENCE.raise_floor("default", 500)
        assert drawn(SEQUENCE)[0] == 701, "one was drawn to see, and none given back"

    def test_update_alone_may_draw(self, role):
        execute("RESET ROLE")
        execute(f"REVOKE ALL ON SEQUENCE orders_seq FROM {role}")
        execute(f"GRANT UPDATE ON SEQUENCE orders_seq TO {role}")
        execute(f"SET ROLE {role}")
        assert drawn(SEQUENCE) == [*range(1, 33)]

    def test_a_short_way_is_drawn(self):
        SEQUENCE.raise_floor("default", 900_000)
        assert drawn(SEQUENCE)[0] == 900_001

    def test_a_long_way_is_the_owners(self):
        assert drawn(SEQUENCE)[0] == 1
        with pytest.raises(
            SourceMismatch,
            match=r"(?s)orders_seq on .* raised to 5000001 .*must be owner"
            r".*ALTER SEQUENCE orders_seq RESTART WITH 5000001",
        ):
            SEQUENCE.raise_floor("default", 5_000_000)
        assert drawn(SEQUENCE)[0] == 33


@needs_postgresql
class TestTheLockOfARaise:
    """ALTER SEQUENCE waits for whoever drew, and all who draw wait for it."""

    @pytest.fixture(autouse=True)
    def sequence(self, make, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.3}
        make("CREATE SEQUENCE orders_seq")

    @pytest.fixture
    def partner_who_drew(self):
        with partner() as alias, transaction.atomic(using=alias):
            execute("SELECT nextval('orders_seq')", using=alias)
            yield

    def test_a_long_way_waits_for_a_bounded_time(self, partner_who_drew):
        with pytest.raises(ReservationTimeout, match="orders_seq"):
            SEQUENCE.raise_floor("default", 5_000_000)
        assert next_value("orders_seq") == 2

    def test_one_that_another_raised_meanwhile_does_not_fall(self, monkeypatch):
        state = PostgreSQL.state
        states = iter([state_of("orders_seq")])
        monkeypatch.setattr(
            PostgreSQL, "state", lambda *given: next(states, None) or state(*given)
        )
        execute("SELECT setval('orders_seq', 6000000)")
        SEQUENCE.raise_floor("default", 5_000_000)
        assert next_value("orders_seq") == 6_000_001

    def test_a_long_way_is_a_restart(self):
        SEQUENCE.raise_floor("default", 5_000_000)
        SEQUENCE.raise_floor("default", 4_000_000)
        assert drawn(SEQUENCE)[0] == 5_000_001


@needs_postgresql
def test_efcore_at_the_end_of_an_int(make):
    make("CREATE SEQUENCE orders_seq INCREMENT BY 10 MAXVALUE 2147483647")
    execute("SELECT setval('orders_seq', 2147483601)")
    ids = drawn(efcore.Sequence("orders_seq"))
    assert ids == [*range(2147483611, 2147483651)]
    with pytest.raises(CounterExhausted):
        drawn(hibernate.PooledLo(10, sequence="orders_seq"))
