"""How long a process keeps its own connection: for a burst of reservations.

Nothing here depends on the machine's speed: a burst goes on until a connection is kept,
and a pause may last longer.
"""

import os
import time
from functools import partial

import pytest
from django.core import mail
from django.core.signals import request_finished
from django.db import OperationalError, connection, transaction
from django.db.backends.signals import connection_created

from django_hilo._database.dialects import dialect_of
from django_hilo.counters import reserve
from django_hilo.exceptions import CounterExhausted
from django_hilo.models import HiLoDocument
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.foreign import needs_postgresql
from tests.support.patience import wait_until
from tests.support.sql import execute

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.skipif(CHOSEN == "sqlite", reason="it reserves on the caller's"),
]

# Seconds. After BURST without a reservation, none is kept; nor after LONGEST_KEPT.
BURST, LONGEST_KEPT = 0.5, 1.0
MAX = 2**63 - 1


def reserve_in_a_transaction(using="default", collection="orders"):
    with transaction.atomic(using=using):
        reserve(collection, 1, using=using)


@pytest.fixture
def opened(heard, monkeypatch):
    """Return the connections that are opened from now on, as outside of tests."""
    for alias in "default", "other":
        reserve_in_a_transaction(alias)  # makes the row, and connects the caller
    monkeypatch.delattr(mail, "outbox")  # a test runner has added it
    opened = heard(connection_created, "connection")
    yield opened
    request_finished.send(None)
    assert not kept(opened)


def kept(opened):
    return [each for each in opened if each.connection is not None]


def burst(opened, using="default"):
    """Reserve until the last connection is kept; return it."""
    wait_until(partial(begin_burst, opened, using), pause=0)
    return opened[-1]


def begin_burst(opened, using):
    reserve_in_a_transaction(using)
    return opened and opened[-1].connection


def test_a_burst_keeps_one_but_not_for_long(opened):
    """Other processes may wait for it."""
    first = burst(opened)
    began = time.monotonic()
    while time.monotonic() < began + LONGEST_KEPT:
        reserve_in_a_transaction()
        assert len(kept(opened)) <= 1
    reserve_in_a_transaction()
    assert first.connection is None


def test_after_a_pause_another_one_is_opened_and_not_kept(opened):
    """The server may have closed what a burst left open."""
    burst(opened)
    for _ in range(2):
        time.sleep(BURST)
        before = len(opened)
        reserve_in_a_transaction()
        assert len(opened) == before + 1
        assert not kept(opened)


def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def fail():
    with pytest.raises(CounterExhausted):
        reserve_in_a_transaction(collection="full")


@pytest.mark.parametrize(
    "end",
    [partial(request_finished.send, None), fork, fail],
    ids=["request", "fork", "error"],
)
def test_what_closes_it(opened, end):
    """A request's end, a fork, and an error: its rollback may undo an idle limit."""
    HiLoDocument.objects.create(collection="full", node_tag="A", max=MAX)
    burst(opened)
    end()
    assert not kept(opened)


def test_a_full_server_gets_back_those_of_all_aliases(opened, receive):
    """And the next try does not keep the one that it got."""
    full = (1040, "Too many connections") if IS_MYSQL else ("too many clients already",)

    def refuse_once(**kwargs):
        connection_created.disconnect(refuse_once)
        raise OperationalError(*full)

    burst(opened, "other")
    time.sleep(BURST)
    receive(connection_created, refuse_once)
    reserve_in_a_transaction()
    assert not kept(opened)


def test_the_server_closes_what_a_burst_left_open(opened, settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.5}  # and half of it, rounded up
    session, sessions = "pg_backend_pid()", "pid FROM pg_stat_activity"
    if IS_MYSQL:
        session, sessions = "connection_id()", "id FROM information_schema.processlist"
    with burst(opened).cursor() as cursor:
        cursor.execute(f"SELECT {session}")
        left = cursor.fetchone()
    wait_until(lambda: left not in execute(f"SELECT {sessions}"))


@needs_postgresql
def test_a_session_of_a_pooler_is_left_as_it_was(opened, receive, monkeypatch):
    """Other programs use it afterwards, and its clients get other process ids."""
    if not hasattr(connection.connection, "pgconn"):
        pytest.skip("psycopg 2 is written in C")
    monkeypatch.setattr(type(connection.connection.info), "backend_pid", 1)
    shown = []
    setting = "SHOW idle_session_timeout"

    def show(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if sql.startswith("UPDATE"):
            shown.extend(context["connection"].connection.execute(setting).fetchone())
        return result

    def watch(connection, **kwargs):
        connection.execute_wrappers.append(show)

    receive(connection_created, watch)
    for _ in range(3):
        reserve_in_a_transaction()
        assert not kept(opened), "nobody would close it"
    assert shown == ["0"] * 3


@pytest.mark.parametrize(
    ("given", "lowered"), [(None, 20), ("5", 5), (60, 20), (0, 20)]
)
def test_no_timeout_is_longer_than_a_reservation_may_last(given, lowered):
    """A process that ends sets shorter ones than OPTIONS has."""
    own = connection.copy()
    if given is not None:
        own.settings_dict["OPTIONS"]["connect_timeout"] = given
    dialect_of(connection).prepare_own(own, 20)
    assert own.settings_dict["OPTIONS"]["connect_timeout"] == lowered
