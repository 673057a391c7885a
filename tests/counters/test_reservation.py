import itertools
import sqlite3
import time
from typing import Any
from unittest.mock import Mock

import pytest
from django.core import serializers
from django.db import DataError, OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import signals

from django_hilo._database import own_connection as module
from django_hilo._database import retry
from django_hilo._database.dialects.base import Dialect
from django_hilo._database.dialects.mysql import MySQL
from django_hilo._database.dialects.postgresql import PostgreSQL
from django_hilo.counters import (
    Range,
    read_max,
    reservation,
    reserve,
    return_range,
    returning,
)
from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    HiLoError,
    InvalidDocumentId,
    RangeNotReturned,
    ReservationTimeout,
)
from django_hilo.generator import next_id, next_ids, next_number, return_ranges
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import range_returned
from tests.apps.records.models import Order, User
from tests.support.counters import counter, counters_wrapped, max_of
from tests.support.databases import CHOSEN
from tests.support.sql import execute
from tests.support.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


class TestReserve:
    def test_ranges_follow_each_other(self):
        first, second = reserve("orders", 10), reserve("Orders", 5)
        assert (first.range, second.range) == (Range(1, 10), Range(11, 15))
        assert first.ticket != second.ticket
        stored = counter()
        assert stored.pk == "orders/A"
        assert (stored.max, stored.low, stored.size) == (15, 11, 5)
        assert stored.ticket == second.ticket
        assert stored.reserved_at is not None

    def test_each_node_has_a_counter_of_its_own(self):
        assert reserve("orders", 10, node_tag="B").range == Range(1, 10)
        assert reserve("orders", 10, node_tag="").range == Range(1, 10)
        assert set(HiLoDocument.objects.values_list("pk", flat=True)) == {
            "orders/B",
            "orders/",
        }

    def test_it_starts_over_what_the_caller_knows(self):
        assert reserve("orders", 10, minimum=100).range == Range(101, 110)

    def test_the_prefix_is_read_in_the_same_request_as_the_counter(self):
        ServerPrefix.objects.create(node_tag="A", prefix="North/")
        reserve("orders")
        reads = []

        def note(execute, sql, *args):
            if "serverprefix" in sql:
                reads.append(sql)
            return execute(sql, *args)

        with counters_wrapped(note):
            reservation = reserve("orders")
        assert reservation.server_prefix == "North/"
        assert len(reads) == 1
        assert "hilodocument" in reads[0]

    def test_a_new_prefix_holds_from_the_next_range_on(self):
        first = next_id(Order)
        ServerPrefix.objects.create(node_tag="A", prefix="North/")
        assert (first, next_id(Order)) == ("orders/1-A", "orders/2-A")
        next_ids(Order, 30)
        assert next_id(Order) == "orders/North/33-A"

    def test_a_prefix_that_sql_spoilt(self):
        ServerPrefix.objects.create(node_tag="A", prefix="7")
        with pytest.raises(InvalidDocumentId, match="server prefix '7'"):
            next_id(Order)
        assert read_max("orders") == 0

    @pytest.mark.parametrize("size", [0, -1])
    def test_sizes_out_of_bounds(self, size):
        with pytest.raises(ValueError, match=f"not {size}"):
            reserve("orders", size)

    def test_collections_and_tags_outside_the_grammar(self):
        with pytest.raises(InvalidDocumentId, match="'1x' must start"):
            reserve("1x")
        with pytest.raises(InvalidDocumentId, match="node tag 'toolong'"):
            reserve("orders", node_tag="toolong")
        assert not HiLoDocument.objects.exists()


class TestExhaustion:
    def test_the_last_numbers_are_given(self):
        HiLoDocument.objects.create(
            collection="orders", node_tag="A", max=MAX_NUMBER - 3
        )
        assert [next_number(Order) for _ in range(3)] == [
            MAX_NUMBER - 2,
            MAX_NUMBER - 1,
            MAX_NUMBER,
        ]
        with pytest.raises(CounterExhausted, match="would exceed 2"):
            next_number(Order)

    def test_a_demand_that_cannot_be_met_takes_nothing(self):
        HiLoDocument.objects.create(
            collection="orders", node_tag="A", max=MAX_NUMBER - 3
        )
        with pytest.raises(CounterExhausted, match="another collection"):
            next_ids(Order, 4)
        assert read_max("orders") == MAX_NUMBER - 3
        with pytest.raises(CounterExhausted):
            next_ids(Order, 10**30)


class TestReturn:
    def test_rules(self):
        reservation = reserve("orders", 32)
        ticket = reservation.ticket
        for high, last, shown in [
            (32, 10, "forged"),
            (32, 10, ""),
            (32, 10, "tïcket\udc80"),
            (31, 10, ticket),
            (32, -1, ticket),
            (32, 33, ticket),
        ]:
            with pytest.raises(RangeNotReturned):
                return_range("orders", high, last, shown)
        assert max_of() == 32
        assert return_range("orders", 32, 10, ticket) == 10
        assert (counter().max, counter().size) == (10, 10)

    def test_nothing_under_the_newest_range(self):
        reserve("orders", 32)
        mine = reserve("orders", 32)
        for last in (31, 0):
            with pytest.raises(RangeNotReturned):
                return_range("orders", 64, last, mine.ticket)
        assert max_of() == 64
        assert return_range("orders", 64, 32, mine.ticket) == 32

    def test_replays(self):
        """RavenDB's hole: the second delivery of a return hands a range out twice."""
        reserve("orders", 32)
        mine = reserve("orders", 64)
        return_range("orders", 96, 64, mine.ticket)
        others = reserve("orders", 32)
        assert others.range == Range(65, 96)
        with pytest.raises(RangeNotReturned):
            return_range("orders", 96, 64, mine.ticket)
        assert reserve("orders", 32).range == Range(97, 128)

    def test_a_range_that_is_not_the_newest(self):
        mine = reserve("orders", 32)
        reserve("orders", 32)
        with pytest.raises(RangeNotReturned, match="no longer the newest"):
            return_range("orders", 32, 5, mine.ticket)

    def test_return_ranges(self, heard):
        seen = heard(range_returned, "collection", "node_tag", "last", "using")
        next_id(Order)
        next_ids(User, 5)
        assert return_ranges("other") == 0
        assert return_ranges() == 2
        assert return_ranges() == 0
        assert sorted(seen) == [
            ("orders", "A", 1, "default"),
            ("users", "A", 5, "default"),
        ]
        assert next_id(Order) == "orders/2-A"

    def test_return_ranges_raises_no_error_of_a_database(self, monkeypatch, caplog):
        next_id(Order)
        next_id(User)
        fail = Mock(side_effect=ConcurrencyError("the database is away"))
        monkeypatch.setattr(reservation, "retry", fail)
        assert return_ranges() == 0
        assert caplog.text.count("the database is away") == 1

    def test_return_ranges_hides_no_interrupt(self, monkeypatch):
        """As of a time limit, which may be any `Exception`."""
        next_id(Order)
        interrupt = Mock(side_effect=ZeroDivisionError)
        monkeypatch.setattr(returning, "return_range", interrupt)
        with pytest.raises(ZeroDivisionError):
            return_ranges()

    def test_all_returns_share_one_own_connection(self, heard, monkeypatch):
        """The second opens one as well, and the others use it."""
        monkeypatch.setattr(module, "is_test_process", lambda: False)
        for name in ("orders", "users", "tables", "chairs"):
            next_number(name)
        connection.ensure_connection()
        module.of_this_process().clear()
        opened = heard(connection_created, "connection")
        with transaction.atomic():
            assert return_ranges() == 4
        if CHOSEN != "sqlite":
            assert [each.alias for each in opened] == ["default"] * 2
            assert module._own_connections["default"]._wrapper is None


class TestACommitThatFails:
    """As on Galera, where COMMIT answers 1213, and where the answer gets lost."""

    @pytest.fixture(params=["after", "instead"])
    def fails(self, request, monkeypatch):
        """Let the next COMMIT raise, after it was done or instead of it."""
        commit = BaseDatabaseWrapper._commit
        failed = []

        def fail_once(wrapper):
            if failed:
                return commit(wrapper)
            failed.append(wrapper.alias)
            if request.param == "after":
                commit(wrapper)
            else:
                wrapper.connection.rollback()
            raise deadlock()

        monkeypatch.setattr(BaseDatabaseWrapper, "_commit", fail_once)
        return failed, request.param

    def test_gives_no_number_of_its_range(self, fails):
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=100)
        failed, moment = fails
        given = next_number("orders")
        assert failed == ["default"]
        assert given == {"after": 133, "instead": 101}[moment]
        document = counter()
        assert document.low <= given <= document.max
        other = reserve("orders", 10).range
        assert other.low == document.max + 1


class _Deadlock(Exception):
    def __init__(self, *args: object, **codes: object) -> None:
        super().__init__(*args)
        vars(self).update(codes)


DEADLOCKS = {
    "postgresql": _Deadlock(sqlstate="40P01"),
    "mysql": _Deadlock(1213, "Deadlock found when trying to get lock"),
    "sqlite": _Deadlock(sqlite_errorcode=sqlite3.SQLITE_BUSY),
}


class TestFallenCounters:
    def test_a_max_under_its_floor(self):
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=5, floor=50)
        assert next_number(Order) == 51


class TestMissingTables:
    def test_the_error_names_the_command(self):
        with connection.schema_editor() as editor:
            editor.delete_model(HiLoDocument)
        try:
            with pytest.raises(
                HiLoError, match=r"migrate django_hilo --database=default"
            ):
                next_number(Order)
        finally:
            with connection.schema_editor() as editor:
                editor.create_model(HiLoDocument)
        assert next_number(Order) == 1


class TestRetries:
    def test_a_passing_failure_is_tried_again_as_a_whole(self, monkeypatch):
        failures = [deadlock(), deadlock()]
        attempt = reservation._LockedChange.__call__

        def fail_twice(*args):
            if failures:
                attempt(*args)
                raise failures.pop()
            return attempt(*args)

        monkeypatch.setattr(reservation._LockedChange, "__call__", fail_twice)
        assert next_number(Order) == 65, "what may have been committed is burnt"

    def test_it_gives_up_in_time(self, monkeypatch, settings):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.05}
        fail = Mock(side_effect=deadlock())
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(ConcurrencyError, match=r"0.05 s.*RETRY_FOR"):
            next_number(Order)
        monkeypatch.undo()
        assert next_number(Order) == 1

    def test_only_a_limit_of_connections_is_told_of_as_one(self, monkeypatch, settings):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.05}
        fail = Mock(side_effect=deadlock())
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(ConcurrencyError) as caught:
            next_number(Order)
        assert "PgBouncer" not in str(caught.value)
        monkeypatch.setattr(Dialect, "is_full", lambda *_: True)
        monkeypatch.setattr(PostgreSQL, "is_full", lambda *_: True)
        monkeypatch.setattr(MySQL, "is_full", lambda *_: True)
        with pytest.raises(ConcurrencyError, match="PgBouncer"):
            next_number(Order)

    @pytest.mark.django_db(transaction=False)
    def test_an_option_of_sqlite_is_named_on_sqlite_alone(self, monkeypatch):
        fail = Mock(side_effect=deadlock())
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(ConcurrencyError, match="Repeat the transaction") as caught:
            reserve("orders", 1)
        assert ("transaction_mode" in str(caught.value)) == (CHOSEN == "sqlite")

    def test_it_gives_up_under_a_frozen_clock(self, monkeypatch, settings):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.05}
        monkeypatch.setattr(retry, "clock", lambda: 1.0)
        fail = Mock(side_effect=[deadlock()] * 2_000)
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(ConcurrencyError, match=r"0.05 s.*RETRY_FOR"):
            next_number(Order)

    def test_it_gives_up_where_freezegun_freezes_and_each_try_waits(
        self, monkeypatch, settings
    ):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.05}
        monkeypatch.setattr(time, "monotonic", lambda: 1.0)
        monkeypatch.setattr(retry.random, "uniform", lambda *_: 0)
        # More than fit into that time, and yet an end.
        fail = Mock(side_effect=itertools.repeat(deadlock(), 200_000))
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(ConcurrencyError, match=r"0.05 s.*RETRY_FOR"):
            next_number(Order)

    def test_other_errors_pass_through(self, monkeypatch):
        fail = Mock(side_effect=DataError("no"))
        monkeypatch.setattr(reservation._LockedChange, "__call__", fail)
        with pytest.raises(DataError):
            next_number(Order)


def deadlock() -> Exception:
    """Return the error of this database that means "try again"."""
    error = OperationalError("try again")
    error.__cause__ = DEADLOCKS[connection.vendor]
    return error


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite reserves on the caller's own")
def test_a_caller_that_makes_the_counter_itself_gets_an_error_not_a_hang(settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.5}
    with transaction.atomic():
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=100)
        with pytest.raises(ReservationTimeout):
            Order.objects.create()
    assert Order.objects.create().id == "orders/101-A"


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_a_fixture_of_a_counter_waits_for_a_reservation(settings, receive):
    """The stored Max is read under the lock that the save then holds."""
    next_number(Order)
    text = serializers.serialize("json", HiLoDocument.objects.all())
    others = []

    def reserve_meanwhile(instance, raw, **kwargs):
        if raw and not others:
            others.append(in_thread(try_to_reserve))

    def try_to_reserve():
        try:
            return reserve("orders", 32).range
        except ReservationTimeout:
            return "waited"

    receive(signals.pre_save, reserve_meanwhile, HiLoDocument)
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.3}
    with transaction.atomic():
        for item in serializers.deserialize("json", text):
            item.save()
    assert others == ["waited"]
    assert HiLoDocument.objects.get().max == 32


@pytest.mark.parametrize("fields", [None, ["max"]])
def test_a_save_replaces_the_ticket(fields):
    mine = reserve("orders", 32)
    HiLoDocument.objects.get().save(update_fields=fields)
    with pytest.raises(RangeNotReturned):
        return_range("orders", 32, 5, mine.ticket)


def fail(execute_it: Any, sql: str, *rest: Any) -> Any:
    """Fail where a caller's transaction reads a counter, as a serialization does."""
    if "hilodocument" in sql:
        execute("SELECT * FROM no_such_table")
    return execute_it(sql, *rest)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one connection for all")
def test_a_return_asks_nothing_of_the_callers_transaction():
    """A failed query there would be swallowed, and PostgreSQL's COMMIT roll back."""
    next_number(Order)
    with transaction.atomic():
        order = Order.objects.create()
        with connection.execute_wrapper(fail):
            assert return_ranges() == 1
    assert Order.objects.filter(pk=order.pk).exists()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one connection for all")
def test_a_return_sees_a_counter_that_is_newer_than_the_callers_snapshot():
    isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    if connection.vendor == "mysql":
        execute(isolation)  # of the next transaction
    with transaction.atomic():
        if connection.vendor == "postgresql":
            execute(isolation)
        assert not HiLoDocument.objects.filter(collection="orders").exists()
        lent = reserve("orders", 10)
        assert return_range("orders", 10, 3, lent.ticket) == 3


def test_a_return_to_no_counter_makes_none():
    with pytest.raises(RangeNotReturned, match="There is no counter 'orderz/A'"):
        return_range("orderz", 10, 3, "ticket")
    assert not HiLoDocument.objects.exists()
