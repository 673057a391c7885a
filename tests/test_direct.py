"""The fewest statements that reserve a range do all that the row's lock did."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import (
    Error,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from django_hilo import connections as module
from django_hilo import direct, reservation, servers
from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    HiLoError,
    ReservationTimeout,
)
from django_hilo.generator import next_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.ranges import Range
from django_hilo.reservation import raise_floor, reserve, return_range
from django_hilo.signals import range_reserved
from tests.databases import CHOSEN
from tests.test_reservation import DEADLOCKS

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's locks")
on_mariadb = pytest.mark.skipif(CHOSEN != "mariadb", reason="MariaDB's locks")
on_sqlite = pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite's transactions")
not_mariadb = pytest.mark.skipif(
    CHOSEN == "mariadb", reason="reserves on a connection of its own"
)
not_psycopg2 = pytest.mark.skipif(
    os.environ.get("HILO_TEST_POSTGRES_DRIVER") == "psycopg2",
    reason="psycopg 2 lets Django begin again",
)

WAYS = ["directly", "under_the_lock"]


@pytest.fixture(params=WAYS)
def each_way(request):
    if request.param == "under_the_lock":
        request.getfixturevalue("under_the_lock")


@pytest.fixture
def raised(monkeypatch) -> list[bool]:
    """Collect whether each call of `raise_max` reserved a range."""
    answers: list[bool] = []
    raise_max = reservation.raise_max

    def note(*args: Any) -> Any:
        written = raise_max(*args)
        answers.append(written is not None)
        return written

    monkeypatch.setattr(reservation, "raise_max", note)
    return answers


def row() -> HiLoDocument:
    return HiLoDocument.objects.get(pk="orders/A")


def counters_connection() -> Any:
    """Return the connection that counters run on, outside of transactions."""
    if CHOSEN == "mariadb":
        return module._own_connections["default"]._wrapper
    return connection


def stored() -> dict[str, Any]:
    (columns,) = HiLoDocument.objects.filter(pk="orders/A").values()
    return columns


class TestStatements:
    def test_one_message_reserves_a_range(self):
        reserve("orders", 10)
        with CaptureQueriesContext(counters_connection()) as queries:
            assert reserve("orders", 10).range == Range(11, 20)
        sql = [query["sql"].split(";")[-1].split()[0] for query in queries]
        assert (
            sql
            == {
                "postgres": ["UPDATE"],
                "sqlite": ["BEGIN", "UPDATE", "COMMIT"],
                "mariadb": ["SET", "UPDATE"],  # tests have a new session each time
            }[CHOSEN]
        )

    def test_the_session_keeps_its_settings(self):
        reserve("orders", 10)
        reserve("orders", 10)
        if CHOSEN == "postgres":
            with connection.cursor() as cursor:
                cursor.execute("SHOW lock_timeout")
                assert cursor.fetchone() == ("0",)
        assert connection.get_autocommit()

    @on_postgresql
    def test_one_message_on_a_connection_of_its_own(self, raised):
        reserve("orders", 10)
        with transaction.atomic():
            assert reserve("orders", 10).range == Range(11, 20)
            transaction.set_rollback(True)
        assert raised == [False, True]
        assert row().max == 20


counts = st.integers(0, 200)
near_the_end = st.integers(MAX_NUMBER - 200, MAX_NUMBER)
# Mostly such that there is a range to reserve.
numbers = counts | counts | counts | st.integers(0, 2**62) | near_the_end
sizes = st.integers(1, 300)
SERVERS = ["", "ours", "theirs"]
states = st.fixed_dictionaries(
    {
        "max": numbers,
        "floor": numbers,
        "low": counts,
        "size": counts,
        "ticket": st.sampled_from(["", "old"]),
        "raised_by": st.sampled_from(SERVERS),
    }
)
SOUND = {"max": 5, "floor": 9, "low": 1, "size": 5, "ticket": "", "raised_by": "ours"}
PREFIXES = [
    "",
    "North/",
    "north/",
    "a-b_c.",
    "7",
    "a b/",
    "a\n",
    "é/",
    "x" * 32,
    "9/",
    "$",
]


class TestBothWays:
    @hypothesis_settings(
        max_examples=150,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
        ],
    )
    @given(
        state=st.none() | states,
        prefix=st.none() | st.sampled_from(PREFIXES),
        server=st.sampled_from(["", "ours"]),
        size=sizes | sizes | sizes | near_the_end | st.just(10**30),
        needed=st.integers(1, 20),
        above=numbers,
        issuer=st.sampled_from(["", "client"]),
    )
    @example(None, None, "", 32, 1, 0, "")
    @example(SOUND, "North/", "ours", 32, 1, 7, "client")
    @example(SOUND, "7", "ours", 32, 1, 7, "")
    @example(SOUND, "a\n", "ours", 32, 1, 7, "")
    @example(SOUND, "x" * 33, "ours", 32, 1, 7, "")
    def test_write_and_answer_the_same(
        self, state, prefix, server, size, needed, above, issuer
    ):
        seen = []
        for way in WAYS:
            HiLoDocument.objects.all().delete()
            ServerPrefix.objects.all().delete()
            if state is not None:
                start = HiLoDocument(
                    id="orders/A", collection="orders", node_tag="A", **state
                )
                HiLoDocument.objects.bulk_create([start])
            if prefix is not None and (len(prefix) <= 32 or CHOSEN == "sqlite"):
                ServerPrefix.objects.bulk_create(
                    [ServerPrefix(node_tag="A", prefix=prefix)]
                )
            with pytest.MonkeyPatch.context() as patch:
                # As if the server had told its name.
                key = module.database_key("default")
                patch.setitem(servers._understood, key, f"'{server}'")
                if way == "under_the_lock":
                    patch.setattr(reservation, "raise_max", lambda *args: None)
                seen.append(
                    self._outcome(size, needed=needed, above=above, issuer=issuer)
                )
        assert seen[0] == seen[1]

    @staticmethod
    def _outcome(size: int, **options: Any) -> tuple[Any, ...]:
        try:
            taken = reserve("Orders", size, **options)
        except (HiLoError, ValueError) as error:
            rows = list(HiLoDocument.objects.values())
            return type(error), str(error), rows
        columns = stored()
        ticket, at = columns.pop("ticket"), columns.pop("reserved_at")
        assert ticket == taken.ticket != "old"
        assert ticket.startswith(options["issuer"])
        assert len(ticket) == 32
        assert at is not None
        return taken.range, taken.server_prefix, taken.collection, columns

    def test_a_range_goes_back(self, each_way):
        reserve("orders", 10)
        mine = reserve("orders", 10)
        assert return_range("orders", 20, 15, mine.ticket) == 15
        raise_floor("orders", 40)
        assert reserve("orders", 10).range == Range(41, 50)


class TestWhatTheRowsLockDoes:
    @pytest.fixture(autouse=True)
    def a_row(self):
        reserve("orders", 10)

    def test_the_direct_way_is_the_usual_one(self, raised):
        reserve("orders", 10)
        assert raised == [True]

    def test_a_row_that_another_server_raised(self, raised, monkeypatch, caplog):
        monkeypatch.setitem(
            servers._understood, module.database_key("default"), "'ours'"
        )
        HiLoDocument.objects.update(raised_by="theirs")
        assert reserve("orders", 10).range == Range(11, 20)
        assert row().raised_by == "ours"
        assert "raised by the server 'theirs' before" in caplog.text
        reserve("orders", 10)
        assert raised == [False, True]

    def test_the_last_numbers(self, raised):
        HiLoDocument.objects.update(max=MAX_NUMBER - 3)
        assert reserve("orders", 10).range == Range(MAX_NUMBER - 2, MAX_NUMBER)
        with pytest.raises(CounterExhausted):
            reserve("orders", 10)
        assert raised == [False, False]

    @pytest.mark.parametrize("others", ["Nord/", "nörd/", "Nörd/x/", ""])
    def test_a_prefix_that_was_edited(self, raised, others):
        ServerPrefix.objects.create(node_tag="A", prefix="Nörd/")
        prefixes = [reserve("orders").server_prefix for _ in range(2)]
        ServerPrefix.objects.update(prefix=others)
        prefixes += [reserve("orders").server_prefix for _ in range(2)]
        assert prefixes == ["Nörd/", "Nörd/", others, others]
        assert raised == [False, True, False, True]

    def test_receivers_are_told(self, each_way):
        told = []

        def receive(reservation, using, **kwargs):
            told.append((using, reservation.range))

        range_reserved.connect(receive)
        try:
            reserve("orders", 5)
        finally:
            range_reserved.disconnect(receive)
        assert told == [("default", Range(11, 15))]

    @on_postgresql
    def test_another_schema(self, raised, monkeypatch):
        monkeypatch.setattr(connection, "schema_name", "public", raising=False)
        assert reserve("orders", 10).range == Range(11, 20)
        assert raised == [False]

    @on_postgresql
    def test_a_level_of_commits(self, raised, settings):
        settings.HILO = {**settings.HILO, "SYNCHRONOUS_COMMIT": "local"}
        assert reserve("orders", 10).range == Range(11, 20)
        assert raised == [False]

    @on_postgresql
    def test_parameters_bound_by_the_server(self, raised, monkeypatch):
        monkeypatch.setitem(
            connection.settings_dict["OPTIONS"], "server_side_binding", True
        )
        connection.close()
        try:
            assert reserve("orders", 10).range == Range(11, 20)
        finally:
            connection.close()
        assert raised == [False]


class TestTriggers:
    @on_mariadb
    def test_a_trigger_that_hides_what_was_written(self, raised):
        reserve("orders", 10)
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TRIGGER audited AFTER UPDATE ON django_hilo_hilodocument "
                "FOR EACH ROW SET @audited = NEW.max"
            )
        try:
            assert reserve("orders", 10).range == Range(11, 20)
            assert reserve("orders", 10).range == Range(21, 30)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TRIGGER audited")
        assert raised == [False, True, True]
        assert row().max == 30


class TestTransactionsOfTheCaller:
    @pytest.fixture(autouse=True)
    def a_row(self):
        reserve("orders", 10)

    def test_a_block_that_rolls_back(self, each_way):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            first = next_number("orders")
            raise ZeroDivisionError
        assert first == 11
        is_bound = CHOSEN == "sqlite"
        assert row().max == (10 if is_bound else 42)
        assert next_number("orders") == (11 if is_bound else 12)

    def test_autocommit_off(self, each_way):
        transaction.set_autocommit(False)
        try:
            first = reserve("orders", 10).range
            transaction.rollback()
        finally:
            transaction.set_autocommit(True)
        assert first == Range(11, 20)
        assert row().max == 20

    @not_psycopg2
    @not_mariadb
    def test_a_begin_of_their_own(self, each_way):
        """Nothing is reserved in a transaction that Django does not know of."""
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                with pytest.raises(Error, match=r"transaction|INTRANS|autocommit"):
                    reserve("orders", 10)
            finally:
                cursor.execute("ROLLBACK")
        assert row().max == 10
        assert reserve("orders", 10).range == Range(11, 20)

    @on_postgresql
    def test_a_begin_of_their_own_is_not_for_the_direct_way(self, raised):
        with connection.cursor() as cursor, suppress(Error):
            cursor.execute("BEGIN")
            reserve("orders", 10)
        connection.close()
        assert raised == [False]

    @on_sqlite
    def test_rows_of_a_returning_that_are_not_read_yet(self, each_way, settings):
        """SQLite commits nothing before they are, not even with autocommit."""
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.1}
        HiLoDocument.objects.create(collection="users", node_tag="A")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_hilo_hilodocument SET size = 1 RETURNING id")
            cursor.fetchone()
            with pytest.raises(ConcurrencyError, match="SQL statements in progress"):
                reserve("orders", 10)
        assert reserve("orders", 10).range == Range(11, 20)

    def test_a_select_that_is_not_read_to_its_end(self, each_way):
        HiLoDocument.objects.create(collection="users", node_tag="A")
        rows = HiLoDocument.objects.iterator(chunk_size=1)
        next(rows)
        assert reserve("orders", 10).range == Range(11, 20)
        with stranger() as cursor:
            cursor.execute("SELECT max FROM django_hilo_hilodocument WHERE size = 10")
            assert list(cursor.fetchall()) == [(20,)]


@contextmanager
def stranger() -> Iterator[Any]:
    """Give a cursor of a session of its own."""
    other = connections["default"].copy()
    try:
        with other.cursor() as cursor:
            yield cursor
    finally:
        other.close()


class TestLocksOfStrangers:
    @pytest.fixture(autouse=True)
    def a_row(self, settings, each_way):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.3, "RETRY_FOR": 0.3}
        reserve("orders", 10)

    @on_postgresql
    @pytest.mark.parametrize(
        "lock",
        [
            "SELECT * FROM django_hilo_hilodocument FOR UPDATE",
            "LOCK TABLE django_hilo_hilodocument IN ACCESS EXCLUSIVE MODE",
            "LOCK TABLE django_hilo_serverprefix IN ACCESS EXCLUSIVE MODE",
        ],
    )
    def test_end_in_time_on_postgresql(self, lock):
        with stranger() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(lock)
            start = time.monotonic()
            with pytest.raises(
                ReservationTimeout, match=r"(?s)'orders/A'.*stayed locked.*0\.3 s"
            ):
                reserve("orders", 10)
            assert 0.2 < time.monotonic() - start < 5
            cursor.execute("ROLLBACK")
        assert reserve("orders", 10).range == Range(11, 20)

    @on_mariadb
    def test_end_in_time_on_mariadb(self):
        with stranger() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM django_hilo_hilodocument FOR UPDATE")
            start = time.monotonic()
            with pytest.raises(ReservationTimeout, match=r"'orders/A'.*stayed locked"):
                reserve("orders", 10)
            assert 0.9 < time.monotonic() - start < 20  # MariaDB has whole seconds
            cursor.execute("ROLLBACK")
        assert reserve("orders", 10).range == Range(11, 20)

    @on_sqlite
    def test_end_in_time_on_sqlite(self):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 100")
        file = connection.settings_dict["NAME"]
        other = sqlite3.connect(file, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ConcurrencyError, match=r"0\.3 s.*locked"):
                reserve("orders", 10)
            other.execute("ROLLBACK")
        finally:
            other.close()
            connection.close()
        assert reserve("orders", 10).range == Range(11, 20)


class TestAnswersThatGetLost:
    """As where Galera refuses the statement, or a connection ends after it."""

    @pytest.mark.parametrize("was_done", [True, False])
    def test_the_next_range_is_over_it(self, was_done, raised):
        reserve("orders", 10)
        lost = []

        def lose(execute, sql, *args):
            if lost or "UPDATE" not in sql:
                return execute(sql, *args)
            lost.append(sql)
            if was_done:
                execute(sql, *args)
            error = OperationalError("the answer got lost")
            error.__cause__ = DEADLOCKS[connection.vendor]
            raise error

        with counters_connection().execute_wrapper(lose):
            taken = reserve("orders", 10).range
        is_stored = was_done and CHOSEN != "sqlite"  # which rolls back
        assert taken == (Range(21, 30) if is_stored else Range(11, 20))
        assert row().max == taken.high
        assert raised == [False, True]  # the first time there was no row


class _Stop(BaseException):
    pass


class TestSignals:
    """A handler that raises, as those of Celery, gunicorn and Ctrl-C do."""

    @on_postgresql
    @pytest.mark.parametrize("error", [_Stop, KeyboardInterrupt, ValueError])
    def test_while_the_server_is_at_it(self, each_way, error):
        reserve("orders", 10)

        def stop(*args):
            raise error

        before = signal.signal(signal.SIGUSR1, stop)
        try:
            with stranger() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM django_hilo_hilodocument FOR UPDATE")
                main = threading.main_thread().ident
                timer = threading.Timer(
                    0.3, signal.pthread_kill, [main, signal.SIGUSR1]
                )
                timer.start()
                with pytest.raises(error):
                    reserve("orders", 10)
                timer.join()
                cursor.execute("ROLLBACK")
        finally:
            signal.signal(signal.SIGUSR1, before)
        # The server may go on with what nobody waits for any more: that is a gap.
        first, second = reserve("orders", 10).range, reserve("orders", 10).range
        assert 10 < first.low < first.high < second.low

    def test_between_the_statement_and_its_answer(self):
        reserve("orders", 10)

        def stop(execute, sql, *args):
            execute(sql, *args)
            if "UPDATE" in sql:
                raise _Stop

        with counters_connection().execute_wrapper(stop), pytest.raises(_Stop):
            reserve("orders", 10)
        with stranger() as cursor:
            cursor.execute("UPDATE django_hilo_hilodocument SET floor = floor")
        assert reserve("orders", 10).range.low == row().low

    @on_postgresql
    def test_an_error_of_the_database_keeps_the_connection(self, monkeypatch):
        reserve("orders", 10)
        session = connection.connection
        monkeypatch.setattr(direct, "server_name_sql", lambda db: "(1 / 0)::text")
        with pytest.raises(Error, match="division by zero"):
            reserve("orders", 10)
        assert connection.connection is session
        monkeypatch.undo()
        assert reserve("orders", 10).range == Range(11, 20)
