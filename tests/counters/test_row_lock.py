"""The lock of a counter's row: bounded waits, callers' transactions, lost answers."""

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from django_hilo.counters import Range, next_gapless_number, reserve
from django_hilo.exceptions import ConcurrencyError, ReservationTimeout
from django_hilo.models import HiLoDocument
from tests.counters.test_reservation import DEADLOCKS
from tests.support.counters import counter, counters_wrapped, max_of
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's locks")
on_mariadb = pytest.mark.skipif(not IS_MYSQL, reason="MariaDB's locks")
on_sqlite = pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite's transactions")


class TestTransactionsOfTheCaller:
    @pytest.fixture(autouse=True)
    def a_row(self):
        reserve("orders", 10)

    def test_autocommit_off(self):
        transaction.set_autocommit(False)
        try:
            first = reserve("orders", 10).range
            transaction.rollback()
        finally:
            transaction.set_autocommit(True)
        assert first == Range(11, 20)
        assert max_of() == 20

    @on_sqlite
    def test_rows_of_a_returning_that_are_not_read_yet(self, settings):
        """SQLite commits nothing before they are, not even with autocommit."""
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.1}
        HiLoDocument.objects.create(collection="users", node_tag="A")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_hilo_hilodocument SET size = 1 RETURNING id")
            cursor.fetchone()
            with pytest.raises(ConcurrencyError, match="SQL statements in progress"):
                reserve("orders", 10)
        assert reserve("orders", 10).range == Range(11, 20)

    def test_a_select_that_is_not_read_to_its_end(self):
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
    def a_row(self, settings):
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
                ReservationTimeout,
                match=r"(?s)'orders/A'.*stayed locked.*LOCK_TIMEOUT'\] is 0\.3 s",
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
        execute("PRAGMA busy_timeout = 100")
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


LIMITS = {
    "postgres": ("statement_timeout", 300, "statement timeout"),
    "mariadb": ("max_statement_time", 0.3, "max_statement_time exceeded"),
}


@pytest.mark.skipif(CHOSEN not in LIMITS, reason="It has no such limit.")
def test_a_shorter_limit_for_statements_is_named(settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 20}
    next_gapless_number("orders")
    name, value, error = LIMITS[CHOSEN]
    with stranger() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM django_hilo_gaplesscounter FOR UPDATE")
        execute(f"SET SESSION {name} = {value}")
        try:
            with pytest.raises(ReservationTimeout, match=f"a lower limit.*{error}"):
                next_gapless_number("orders")
        finally:
            execute(f"SET SESSION {name} = 0")
        cursor.execute("ROLLBACK")
    assert next_gapless_number("orders") == 2


class TestAnswersThatGetLost:
    """As where Galera refuses the statement, or a connection ends after it."""

    @pytest.mark.parametrize("was_done", [True, False])
    def test_the_next_range_is_over_it(self, was_done):
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

        with counters_wrapped(lose):
            taken = reserve("orders", 10).range
        assert taken == Range(11, 20)  # the transaction rolled back
        assert max_of() == taken.high


class _Stop(BaseException):
    pass


class TestSignals:
    """A handler that raises, as those of Celery, gunicorn and Ctrl-C do."""

    @on_postgresql
    @pytest.mark.parametrize("error", [_Stop, KeyboardInterrupt, ValueError])
    def test_while_the_server_is_at_it(self, error):
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

        with counters_wrapped(stop), pytest.raises(_Stop):
            reserve("orders", 10)
        with stranger() as cursor:
            cursor.execute("UPDATE django_hilo_hilodocument SET floor = floor")
        assert reserve("orders", 10).range.low == counter().low
