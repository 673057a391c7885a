"""What transactions do to ranges; the same expectations on every database.

`committed` holds for all: a number that a committed transaction got is never given
again. On SQLite, another process may give numbers that only a rolled-back transaction
saw; this one does not.
"""

import signal
import sys
import threading
from functools import partial
from itertools import chain
from math import inf
from unittest.mock import Mock

import pytest
from django.db import Error, OperationalError, connection, connections, transaction
from django.db.backends.signals import connection_created
from django.test import TransactionTestCase
from django.test.utils import CaptureQueriesContext

from django_hilo import _lock
from django_hilo._allocation import counter, memory, refill
from django_hilo._database import own_connection, which_connection
from django_hilo._database import retry as retry_module
from django_hilo._database.own_connection import OwnConnection, of_this_process
from django_hilo._database.retry import retry
from django_hilo._database.transaction import Outcome, state_of
from django_hilo.counters import reservation, reserve
from django_hilo.exceptions import (
    ConcurrencyError,
    HiLoError,
    NestedReservation,
    ReservationTimeout,
)
from django_hilo.generator import next_ids, next_number, next_numbers
from django_hilo.models import HiLoDocument
from django_hilo.sources import hibernate
from tests.apps.numbers.models import Item
from tests.apps.records.models import Letter, Order
from tests.support.counters import max_of
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.rollbacks import Undo
from tests.support.sql import execute
from tests.support.threads import in_thread, in_threads

pytestmark = pytest.mark.servers

transactional = pytest.mark.django_db(transaction=True)
sqlite_only = pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite's bound ranges")
servers_only = pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")


# Renamed in Django 6.1.
make_savepoint = getattr(transaction, "savepoint_create", transaction.savepoint)


def numbers_of_others(count: int = 40) -> set[int]:
    """Return what another process gets now: it shares the database, not the memory."""
    return set(in_thread(lambda: _reserve_as_another_process(count)))


def assert_given_once(kept: set[int]) -> None:
    """Neither others get these numbers nor this process, which gets none of theirs."""
    others = numbers_of_others()
    assert not kept & others
    assert not {next_number(Order) for _ in range(50)} & (others | kept)


def _reserve_as_another_process(count: int) -> list[int]:
    numbers = reserve("orders", count).range
    return list(range(numbers.low, numbers.high + 1))


@transactional
class TestRollbacks:
    def test_a_rolled_back_transaction_repeats_no_number_of_others(self):
        with pytest.raises(Undo), transaction.atomic():
            mine = {next_number(Order) for _ in range(3)}
            raise Undo
        others = numbers_of_others()
        again = {next_number(Order) for _ in range(100)}

        assert not others & again
        if CHOSEN != "sqlite":
            assert not mine & (others | again)

    def test_a_committed_transaction_shares_its_range_afterwards(self):
        with transaction.atomic():
            first = next_number(Order)
        with CaptureQueriesContext(connection) as queries:
            second = next_number(Order)

        assert (first, second) == (1, 2)
        assert not queries.captured_queries

    def test_an_inner_block_that_rolls_back(self):
        with transaction.atomic():
            kept = {next_number(Order)}
            with pytest.raises(Undo), transaction.atomic():
                next_ids(Order, 40)
                raise Undo
            kept |= {next_number(Order) for _ in range(100)}
            assert len(kept) == 101
        others = numbers_of_others()
        later = {next_number(Order) for _ in range(100)}

        assert not kept & others and not kept & later and not others & later

    def test_a_released_inner_block_inside_one_that_rolls_back(self):
        with transaction.atomic():
            with pytest.raises(Undo), transaction.atomic():
                with transaction.atomic():
                    next_number(Order)
                raise Undo
            kept = {next_number(Order) for _ in range(3)}
        assert_given_once(kept)

    def test_a_savepoint_of_the_low_level_api(self):
        with transaction.atomic():
            savepoint = make_savepoint()
            next_number(Order)
            transaction.savepoint_rollback(savepoint)
            kept = {next_number(Order) for _ in range(3)}
        assert_given_once(kept)

    def test_a_savepoint_younger_than_the_range_leaves_the_range(self):
        with transaction.atomic():
            first = next_number(Order)
            savepoint = make_savepoint()
            second = next_number(Order)
            transaction.savepoint_rollback(savepoint)
            third = next_number(Order)

        assert (first, second, third) == (1, 2, 3)

    @pytest.mark.parametrize(
        "rollback",
        ["ROLLBACK TO SAVEPOINT own", "rollback to own", "/* so */ Rollback TO own;"],
    )
    def test_sql_that_rolls_back_to_a_savepoint(self, rollback):
        if IS_MYSQL and rollback.startswith("/*"):
            rollback = "ROLLBACK TO own"
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SAVEPOINT own")
                next_number(Order)
                cursor.execute(rollback)
            kept = {next_number(Order) for _ in range(3)}
        assert_given_once(kept)

    @sqlite_only
    def test_sql_that_rolls_back_everything(self):
        with transaction.atomic():
            next_number(Order)
            execute("ROLLBACK")
            execute("BEGIN")
            kept = {next_number(Order) for _ in range(3)}
        assert_given_once(kept)

    def test_a_wrapper_of_the_callers_stays_the_callers(self):
        seen = []

        def wrapper(execute, sql, params, many, context):
            seen.append(sql)
            return execute(sql, params, many, context)

        Order.objects.count()  # ends what watched the transaction before
        before = list(connection.execute_wrappers)
        with transaction.atomic(), connection.execute_wrapper(wrapper):
            Order.objects.create()
        count = len(seen)
        Order.objects.count()

        assert len(seen) == count
        assert connection.execute_wrappers == before

    def test_set_rollback(self):
        with transaction.atomic():
            next_number(Order)
            transaction.set_rollback(True)
        assert_given_once(set())

    def test_an_earlier_hook_that_raises(self):
        def fail():
            raise Undo

        with pytest.raises(Undo), transaction.atomic():
            transaction.on_commit(fail)
            kept = {next_number(Order)}
        assert_given_once(kept)

    def test_an_earlier_hook_that_takes_numbers(self):
        taken = []
        with transaction.atomic():
            transaction.on_commit(lambda: taken.append(next_number(Order)))
            taken += [next_number(Order), next_number(Order)]
        taken += [next_number(Order) for _ in range(100)]

        assert len(set(taken)) == 103

    def test_a_closed_connection(self):
        with pytest.raises(Exception), transaction.atomic():  # noqa: B017
            next_number(Order)
            connection.close()
            Order.objects.count()
        assert_given_once(set())

    def test_without_autocommit(self):
        connection.set_autocommit(False)
        try:
            first = next_number(Order)
            transaction.rollback()
            second = next_number(Order)
            transaction.commit()
        finally:
            connection.set_autocommit(True)
        assert_given_once({second})
        if CHOSEN != "sqlite":
            assert first != second

    @pytest.mark.django_db(transaction=True, databases=["default", "other"])
    def test_two_transactions_that_rolled_back_on_two_databases(self):
        with transaction.atomic(using="default"):
            with pytest.raises(Undo), transaction.atomic(using="other"):
                next_number(Order, "other")
                raise Undo
            kept = next_number(Order)
        assert next_number(Order) == kept + 1


@transactional
def test_marks_of_savepoints():
    state = state_of(connection)
    with transaction.atomic():
        outer = state.mark()
        with transaction.atomic():
            released = state.mark()
        with pytest.raises(Undo), transaction.atomic():
            inner = state.mark()
            raise Undo
        assert inner.outcome is Outcome.ROLLED_BACK
        assert outer.outcome is released.outcome is Outcome.OPEN
        # Nothing but a rollback of both can undo the work since.
        assert state.mark() is released
    assert (outer.outcome, released.outcome) == (Outcome.COMMITTED,) * 2


@servers_only
@transactional
class TestOwnConnection:
    def test_the_row_is_not_locked_until_the_callers_commit(self):
        with transaction.atomic():
            mine = next_number(Order)
            others = numbers_of_others()

        assert mine not in others

    def test_nothing_is_left_on_the_callers_connection(self):
        mysqls = "SELECT @@innodb_lock_wait_timeout"
        query = mysqls if IS_MYSQL else "SHOW lock_timeout"

        before = execute(query)
        next_number(Order)
        with transaction.atomic():
            next_ids(Order, 100)
            assert execute(query) == before
        assert execute(query) == before

    def test_it_is_opened_with_the_settings_of_now(self, monkeypatch, stays_open):
        """As with a password that was rotated."""
        with transaction.atomic():
            next_number(Order)
        own_connection.close_unused()
        monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", 7)
        with transaction.atomic():
            next_numbers(Order, 100)
        own = of_this_process()["default"]
        assert own._wrapper.settings_dict["CONN_MAX_AGE"] == 7

    def test_a_caller_with_another_password_has_another_one(self, stays_open):
        with transaction.atomic():
            next_number(Order)
        own, callers = of_this_process()["default"], connection.copy()
        callers.settings_dict["PASSWORD"] = "another"
        opened_before = own._wrapper
        assert own._open(callers) is not opened_before
        assert own._wrapper.settings_dict["PASSWORD"] == "another"

    def test_a_caller_that_holds_the_row_gets_an_error_and_loses_nothing(
        self, settings
    ):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.5}
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=10)
        with transaction.atomic():
            Order.objects.create(id="kept")
            HiLoDocument.objects.filter(collection="orders").update(max=20)
            with pytest.raises(ReservationTimeout, match="orders/A.*stayed locked"):
                Order.objects.create()
            with pytest.raises(ReservationTimeout):
                Order.objects.bulk_create([Order()])
            Order.objects.create(id="also-kept")

        assert Order.objects.filter(id__in=["kept", "also-kept"]).count() == 2
        assert Order.objects.create().id == "orders/21-A"

    def test_threads_in_a_queue_share_one_wait(self, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 1.0}
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=10)
        errors = []

        def ask(_):
            try:
                next_number(Order)
            except HiLoError as error:
                errors.append(type(error))

        with transaction.atomic():
            HiLoDocument.objects.filter(collection="orders").update(max=20)
            in_threads(6, ask)

        assert errors == [ReservationTimeout] * 6
        assert next_number(Order) == 21

    @pytest.mark.parametrize(
        "level", ["read uncommitted", "repeatable read", "serializable"]
    )
    def test_isolation_levels_of_the_caller(self, level):
        def ask():
            with connection.cursor() as cursor:
                if IS_MYSQL:
                    cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            with transaction.atomic():
                if CHOSEN == "postgres":
                    execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                Order.objects.count()
                numbers_of_others()
                return {next_number(Order) for _ in range(100)}

        assert len(in_thread(ask)) == 100

    @pytest.mark.skipif(not IS_MYSQL, reason="Others have no such variable.")
    def test_sessions_that_begin_without_autocommit(self, python):
        python(
            "from django.db import connection\n"
            "options = connection.settings_dict['OPTIONS']\n"
            "options['init_command'] = 'SET autocommit = 0'\n"
            "for _ in range(40): Order.objects.create()\n"
        )
        assert Order.objects.count() == HiLoDocument.objects.get().max == 40

    def test_the_own_connection_is_closed_in_tests(self):
        with transaction.atomic():
            next_number(Order)

        assert own_connection._own_connections["default"]._wrapper is None

    @pytest.fixture
    def stays_open(self, monkeypatch):
        """Let the own connection be kept, as in a burst outside of tests."""
        monkeypatch.setattr(own_connection, "is_test_process", lambda: False)
        monkeypatch.setattr(own_connection, "BURST", inf)
        monkeypatch.setattr(own_connection, "LONGEST_KEPT", inf)
        own = own_connection._own_connections["default"] = OwnConnection("default")
        own._ended = 0.0
        yield
        own_connection.close_unused()

    @pytest.mark.parametrize("stop", ["kill", "become_a_standby"])
    def test_an_own_connection_of_no_use_is_replaced(self, stays_open, stop):
        if stop == "become_a_standby" and CHOSEN != "postgres":
            pytest.skip("PostgreSQL's sessions that refuse writes")
        with transaction.atomic():
            next_number(Order)
            own = own_connection._own_connections["default"]._wrapper
            assert own.connection is not None
            {"kill": kill, "become_a_standby": become_a_standby}[stop](own)
            assert len(set(next_ids(Order, 100))) == 100

    @pytest.mark.skipif(CHOSEN != "postgres", reason="MariaDB's callers are not asked")
    def test_a_callers_connection_that_was_killed(self):
        next_number(Order)
        kill(connections["default"])
        assert len(set(next_ids(Order, 100))) == 100
        with pytest.raises(OperationalError), transaction.atomic():
            kill(connections["default"])
            next_ids(Order, 1000)
            Order.objects.count()
        connection.close()
        assert Order.objects.create().id

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="it has no server")
    def test_a_callers_connection_that_was_killed_before_its_first_integer_key(self):
        kill(connections["default"])
        try:
            assert next_number(Item) >= 1
        finally:
            connection.close()

    @pytest.mark.skipif(not IS_MYSQL, reason="PostgreSQL draws from a sequence")
    def test_a_transaction_that_was_lost_without_atomic_is_told(self):
        connection.set_autocommit(False)
        try:
            kill(connections["default"])
            with pytest.raises(Error):
                next_number(Item)
        finally:
            connection.close()

    def test_one_extra_connection_for_many_threads(self, monkeypatch, stays_open):
        for n in range(5):
            next_number(f"things-{n}")
            next_numbers(f"things-{n}", 31)
        own_connection.close_unused()
        copy = Mock(wraps=own_connection._copy)
        monkeypatch.setattr(own_connection, "_copy", copy)

        def ask():
            with transaction.atomic():
                return [next_number(f"things-{n}") for n in range(5)]

        for _ in range(4):
            in_thread(ask)

        copy.assert_called_once()


def kill(wrapper) -> None:
    with wrapper.cursor() as cursor:
        cursor.execute(
            "SELECT pg_backend_pid()"
            if CHOSEN == "postgres"
            else "SELECT connection_id()"
        )
        (process,) = cursor.fetchone()
    statement = "SELECT pg_terminate_backend(%s)" if CHOSEN == "postgres" else "KILL %s"
    killer = connection.copy()
    with killer.cursor() as cursor:
        cursor.execute(statement, [process])
    killer.close()


def become_a_standby(wrapper) -> None:
    with wrapper.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")


class AfterFlush(TransactionTestCase):
    def test_the_memory_is_flushed_with_the_tables(self):
        self.assertEqual(Order.objects.create().id, "orders/1-A")

    def test_the_memory_is_flushed_with_the_tables_again(self):
        self.assertEqual(Order.objects.create().id, "orders/1-A")


class AfterFlushOfSomeApps(AfterFlush):
    available_apps = ["django_hilo", "tests.apps.records"]


@transactional
def test_first_row_race_and_hot_row_among_threads():
    barrier = threading.Barrier(6)

    def ask(_):
        barrier.wait()
        return [number for _ in range(5) for number in _reserve_as_another_process(7)]

    assert sorted(chain.from_iterable(in_threads(6, ask))) == list(
        range(1, 6 * 5 * 7 + 1)
    )


@transactional
class TestInterrupts:
    """As by Ctrl-C, or the time limit of a Celery task."""

    @servers_only
    @pytest.mark.parametrize(
        "module",
        # Elsewhere the lock has no function in Python.
        [own_connection, retry_module, which_connection, refill, counter, memory]
        + [_lock] * (sys.version_info[:2] == (3, 14)),
    )
    def test_at_any_call_they_keep_no_lock(self, module, settings):
        changed = {"LOCK_TIMEOUT": 1, "RETRY_FOR": 1, "MAX_CAPACITY": 32}
        settings.HILO = settings.HILO | changed
        kept_alive = []  # as by a log of errors: no lock waits for the collector
        while len(kept_alive) < 1000:
            events_left = len(kept_alive)

            def interrupt(frame, event, argument):
                # Where Python calls the handlers of signals: a function begins, or one
                # in C has returned; since 3.15 not after a lock's own __enter__.
                nonlocal events_left
                is_inside = frame.f_code.co_filename == module.__file__
                name = getattr(argument, "__name__", "")
                if is_inside and (name != "__enter__" or sys.version_info < (3, 15)):
                    events_left -= event in ("call", "c_return")
                    if events_left < 0:
                        raise KeyboardInterrupt

            try:
                with transaction.atomic():
                    sys.setprofile(interrupt)
                    next_numbers("orders", 40)
                    sys.setprofile(None)
            except KeyboardInterrupt as error:
                kept_alive.append(error)
            finally:
                sys.setprofile(None)
            ids = in_thread(lambda: next_numbers("orders", 40))
            assert len(ids) == 40
            if events_left >= 0:
                break
        assert len(kept_alive) > 2

    def test_nobody_waits_for_himself(self):
        own = OwnConnection("default")
        nested = partial(own.hold, list, 0.1)
        with pytest.raises(NestedReservation, match="already"):
            own.hold(nested, 0.1)
        with pytest.raises(ReservationTimeout, match="busy"):
            own.hold(partial(in_thread, nested), 1)
        assert nested() == []

    @transactional
    @servers_only
    def test_a_transaction_that_it_left_open_is_not_used_again(
        self, monkeypatch, settings
    ):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.5}
        leave = transaction.Atomic.__exit__

        def interrupted(self, *error):
            if str(self.using).endswith(":hilo"):
                monkeypatch.undo()
                raise KeyboardInterrupt
            return leave(self, *error)

        monkeypatch.setattr(transaction.Atomic, "__exit__", interrupted)
        with pytest.raises(KeyboardInterrupt), transaction.atomic():
            reserve("orders", 32)
        for _ in range(2):
            with transaction.atomic():
                assert reserve("orders", 32).range.low > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(IS_MYSQL, reason="MariaDB forgets the older savepoint")
def test_a_savepoint_name_that_is_used_again():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SAVEPOINT step")
        next_number(Order)
        cursor.execute("SAVEPOINT step")
        next_number(Order)
        for _ in range(2):
            cursor.execute("ROLLBACK TO SAVEPOINT step")
            cursor.execute("RELEASE SAVEPOINT step")
        mine = {next_number(Order) for _ in range(2)}
    others = in_thread(lambda: reserve("orders", 4).range)
    assert not any(number in others for number in mine)


@pytest.mark.skipif(CHOSEN != "postgres", reason="psycopg's composed SQL")
@pytest.mark.django_db(transaction=False)
def test_composed_sql_that_rolls_back():
    from django.db.backends.postgresql.psycopg_any import sql

    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT own")
        letter = Letter.objects.create()
        cursor.execute(sql.SQL("ROLLBACK TO SAVEPOINT own"))
    assert letter.pk == Letter.objects.create().pk == "letters/1"
    letter.save()
    assert letter.pk == "letters/2"  # the first was taken back


@pytest.mark.django_db(transaction=True)
def test_without_autocommit_only_what_is_needed_is_reserved():
    connection.set_autocommit(False)
    try:
        numbers = [next_number(Order) for _ in range(4)]
        transaction.commit()
    finally:
        connection.set_autocommit(True)
    assert numbers == [1, 2, 3, 4]


@pytest.fixture
def two_schemas():
    """A second schema, with tables of its own, on PostgreSQL."""
    tables = ("django_hilo_hilodocument", "django_hilo_serverprefix", "records_order")
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA tenant")
        for table in tables:
            cursor.execute(
                f"CREATE TABLE tenant.{table} (LIKE public.{table} INCLUDING ALL)"
            )
    yield
    vars(connections["default"]).pop("schema_name", None)
    execute("SET search_path TO public")
    execute("DROP SCHEMA tenant CASCADE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(CHOSEN != "postgres", reason="schemas")
class TestSchemas:
    def use(self, path: str) -> None:
        execute(f"SET search_path TO {path}")

    def test_the_own_connection_works_in_the_schema_of_the_caller(self, two_schemas):
        Order.objects.create()
        vars(connections["default"])["schema_name"] = "tenant"
        self.use("tenant")
        with transaction.atomic():
            assert Order.objects.create().id == "orders/1-A"
            assert max_of() == 32
        assert Order.objects.create().id == "orders/2-A"
        assert execute("SELECT max FROM public.django_hilo_hilodocument") == [(32,)]


@pytest.mark.django_db(transaction=True)
def test_an_explicit_id_in_an_earlier_hook():
    def insert():
        with transaction.atomic():
            Order(id="orders/5-A").save()

    with transaction.atomic():
        transaction.on_commit(insert)
        Order.objects.create()
    assert len({Order.objects.create().id for _ in range(40)}) == 40


@pytest.mark.django_db(transaction=True)
def test_a_query_in_an_earlier_hook_costs_no_range():
    ids = []
    for _ in range(5):
        with transaction.atomic():
            transaction.on_commit(Order.objects.count)
            ids.append(Order.objects.create().id)
    assert ids == [f"orders/{number}-A" for number in range(1, 6)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(CHOSEN != "postgres", reason="SQL as bytes")
def test_sql_as_bytes():
    with transaction.atomic(), connection.cursor() as cursor:
        Order(id="orders/5-A").save()
        cursor.execute(b"SELECT 1")


@transactional
class TestAThreadThatComesBackToItself:
    """As in a finalizer, or a signal's handler, while the thread reserves a range."""

    @pytest.fixture
    def amid(self, monkeypatch):
        """Return what calls a function once, in the middle of a reservation."""
        new_ticket = reservation.new_ticket

        def arrange(call):
            def first(issuer=""):
                monkeypatch.setattr(reservation, "new_ticket", new_ticket)
                call()
                return new_ticket(issuer)

            monkeypatch.setattr(reservation, "new_ticket", first)

        return arrange

    @staticmethod
    def finalize(call):
        class Finalized:
            def __del__(self):
                call()

        Finalized()  # nothing refers to it

    @staticmethod
    def signal(call):
        before = signal.signal(signal.SIGUSR1, lambda *_: call())
        try:
            signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)

    @staticmethod
    def asker(found):
        def ask():
            try:
                found.append(next_number("others"))
            except HiLoError as error:
                found.append(type(error))

        return ask

    @pytest.mark.parametrize("come_back", ["finalize", "signal"])
    def test_in_a_transaction(self, amid, come_back):
        found = []
        amid(lambda: getattr(self, come_back)(self.asker(found)))
        with transaction.atomic():
            mine = next_number("orders")
        assert found == [1 if CHOSEN == "sqlite" else NestedReservation]
        assert next_number("orders") == mine + 1
        assert next_number("others") == (2 if CHOSEN == "sqlite" else 1)

    @pytest.mark.parametrize("come_back", ["finalize", "signal"])
    def test_outside_of_transactions(self, amid, come_back):
        found = []
        amid(lambda: getattr(self, come_back)(self.asker(found)))
        assert next_number("orders") == 1
        # MariaDB's reservations have a connection of their own there, too.
        assert found == [NestedReservation if IS_MYSQL else 1]
        assert next_number("orders") == 2

    def test_a_receiver_of_connection_created(self, receive):
        found = []
        ask = self.asker(found)

        def ask_once(**kwargs):
            connection_created.disconnect(ask_once)
            ask()

        next_number("orders")
        HiLoDocument.objects.create(collection="others", node_tag="A")
        connections["default"].close()
        receive(connection_created, ask_once)
        with transaction.atomic():
            next_ids("orders", 100)
        assert len(found) == 1
        assert next_number("others") == (2 if found == [1] else 1)


@transactional
@pytest.mark.parametrize("reservation_of", ["own", "source"])
@pytest.mark.parametrize(
    "kind", [ReservationTimeout, ConcurrencyError, NestedReservation]
)
def test_callers_may_retry_what_is_not_retried_here(reservation_of, kind):
    tried = []

    def fail(db):
        tried.append(db)
        raise kind("as it was raised")

    with pytest.raises(OperationalError, match=r"^as it was raised$") as caught:
        if reservation_of == "own":
            retry(fail, "default", "a counter")
        else:
            hibernate.HiLo(9)._attempt(fail, "default")
    assert caught.type is kind
    assert len(tried) == 1
