"""How long a process keeps its own connection: for a burst of reservations."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.core.signals import request_finished
from django.db import OperationalError, connection, transaction

from django_hilo._database import own_connection
from django_hilo._database.dialects.base import rows_of
from django_hilo._database.own_connection import BURST, LONGEST_KEPT, OwnConnection
from django_hilo.counters import reservation, reserve
from django_hilo.exceptions import CounterExhausted
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.foreign import needs_postgresql

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN == "sqlite", reason="it reserves on the caller's"),
]


@pytest.fixture
def clock(monkeypatch) -> Iterator[SimpleNamespace]:
    """Let time stand still until a test moves it, as outside of tests."""
    reserve("orders", 1)  # makes the row first
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(own_connection, "clock", lambda: clock.now)
    monkeypatch.setattr(own_connection, "in_tests", lambda: False)
    own_connection.of_this_process().clear()
    yield clock
    own_connection.close_unused()


def reserve_in_a_transaction() -> None:
    with transaction.atomic():
        reserve("orders", 1)


def session() -> object | None:
    """Return the driver's connection, if the process has kept its own."""
    wrapper = own_connection.of_this_process()["default"]._wrapper
    return wrapper and wrapper.connection


@pytest.fixture
def kept(clock) -> object:
    """Return the connection of a burst."""
    for _ in range(2):
        reserve_in_a_transaction()
    return session()


def test_one_that_is_rarely_used_is_not_kept(clock):
    for _ in range(3):
        reserve_in_a_transaction()
        assert session() is None
        clock.now += BURST


def test_a_burst_keeps_one_for_a_while(clock, kept):
    assert kept
    clock.now += BURST * 0.9
    reserve_in_a_transaction()
    assert session() is kept
    clock.now += LONGEST_KEPT - BURST * 0.9
    reserve_in_a_transaction()
    assert session() is None


def test_what_a_burst_left_open_is_not_used_again(clock, kept, monkeypatch):
    """The server may have closed it."""
    wrapper = own_connection.of_this_process()["default"]._wrapper
    clock.now += BURST
    monkeypatch.setattr(wrapper, "cursor", Mock(side_effect=AssertionError))
    reserve_in_a_transaction()
    assert wrapper.connection is None


def test_the_end_of_a_request_closes_it(kept):
    request_finished.send(None)
    assert session() is None


def test_an_error_closes_it(kept, monkeypatch):
    """A rollback may have undone what closes an idle session."""
    monkeypatch.setattr(
        reservation, "_change_locked", Mock(side_effect=CounterExhausted)
    )
    with pytest.raises(CounterExhausted):
        reserve_in_a_transaction()
    assert session() is None


def test_a_failure_is_of_no_burst(clock, monkeypatch):
    """Where the server is full, the next try is not to keep what it got."""
    with monkeypatch.context() as patches:
        patches.setattr(reservation, "_change_locked", _full_at_first())
        reserve_in_a_transaction()
    assert session() is None


def test_a_full_server_gets_back_what_other_aliases_hold(clock, kept, monkeypatch):
    other = own_connection.of_this_process()["other"] = OwnConnection("other")
    other._wrapper = wrapper = connection.copy()
    wrapper.connect()
    monkeypatch.setattr(reservation, "_change_locked", _full_at_first())
    reserve_in_a_transaction()
    assert other._wrapper is None
    assert wrapper.connection is None


def _full_at_first() -> Callable[..., object]:
    """Return what finds no connection at first, and then reserves."""
    real = reservation._change_locked
    full = (1040, "Too many connections") if IS_MYSQL else ("too many clients already",)
    left = [OperationalError(*full)]

    def change(*args, **kwargs):
        if left:
            raise left.pop()
        return real(*args, **kwargs)

    return change


@pytest.mark.parametrize(("timeout", "limit"), [(5, 3), (0.5, 1)])
def test_the_server_closes_what_a_burst_left_open(settings, clock, timeout, limit):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": timeout}
    for _ in range(2):
        reserve_in_a_transaction()
    wrapper = own_connection.of_this_process()["default"]._wrapper
    query = "SELECT @@wait_timeout" if IS_MYSQL else "SHOW idle_session_timeout"
    assert rows_of(wrapper, query) == [(limit if IS_MYSQL else f"{limit}s",)]
    if CHOSEN == "mariadb":  # which may have a longer one inside of transactions
        assert rows_of(wrapper, "SELECT @@idle_transaction_timeout") == [(limit,)]


@needs_postgresql
def test_a_session_of_a_pooler_is_left_as_it_was(clock, monkeypatch):
    """Other programs use it afterwards, and its clients get other process ids."""
    if not hasattr(connection.connection, "pgconn"):
        pytest.skip("psycopg 2 is written in C")
    monkeypatch.setattr(type(connection.connection.info), "backend_pid", 1)
    shown: list[object] = []
    real = reservation._change_locked

    def change(*args, **kwargs):
        result = real(*args, **kwargs)
        wrapper = own_connection.of_this_process()["default"]._wrapper
        shown.append(rows_of(wrapper, "SHOW idle_session_timeout"))
        return result

    monkeypatch.setattr(reservation, "_change_locked", change)
    for _ in range(3):
        reserve_in_a_transaction()
        assert session() is None, "nobody would close it"
    assert shown == [[("0",)]] * 3
