"""Ranges that grow by the wait for the counter's row, and the bounds of that wait."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo._database.retry import short_transaction
from django_hilo.counters import next_gapless_number, reservation, reserve
from django_hilo.counters.own import OwnSource
from django_hilo.counters.ranges import Capacity, Wanted
from django_hilo.exceptions import ReservationTimeout
from django_hilo.generator import next_ids, next_number
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.counters.test_reservation import deadlock
from tests.counters.test_row_lock import stranger
from tests.support.counters import max_of
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
on_servers = pytest.mark.skipif(CHOSEN == "sqlite", reason="It has one writer.")
on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="It has such limits.")


@pytest.mark.parametrize(
    ("capacity", "waited", "size"),
    [
        (Capacity(32, 0, 1_000_000), 0.0, 32),
        (Capacity(32, 0, 1_000_000), 0.249, 32),  # a server far away
        (Capacity(32, 0, 1_000_000), 0.5, 45),
        (Capacity(32, 0, 1_000_000), 1.0, 64),
        (Capacity(32, 0, 1_000_000), 5.0, 1024),
        (Capacity(32, 0, 1_000_000), 3600.0, 1024),
        (Capacity(32, 0, 100), 5.0, 100),
        (Capacity(1, 1, 1), 5.0, 1),
        (Capacity(64, 128, 1_000_000), 0.0, 64),
        (Capacity(64, 128, 1_000_000), 1.0, 256),  # halved only if nobody waits
        (Capacity(64, 128, 100), 1.0, 100),  # settings changed
        (Capacity(0, 0, 0), 5.0, 0),
    ],
)
def test_sizes_after_a_wait(capacity, waited, size):
    assert capacity.after(waited) == size


@pytest.fixture
def waiting(monkeypatch) -> Callable[..., None]:
    """Let the next reservations wait so many seconds for the row, each in turn."""

    def waiting(*seconds: float) -> None:
        times: Iterator[float] = iter([t for each in seconds for t in (0.0, each)])
        monkeypatch.setattr(reservation, "clock", lambda: next(times, 0.0))

    return waiting


@on_servers
class TestRanges:
    @pytest.fixture(autouse=True)
    def a_row(self):
        HiLoDocument.objects.create(collection="orders", node_tag="A")

    def test_the_first_one_grows_and_the_next_goes_on_from_it(self, waiting):
        waiting(1.0)
        assert next_number(Order) == 1
        assert max_of() == 64
        next_ids(Order, 64)
        assert max_of() == 64 + 128, "twice the last one, by RavenDB's rule"

    def test_a_wait_is_not_counted_twice(self, waiting):
        waiting(1.0, 0.0)
        next_ids(Order, 65)
        assert max_of() == 65, "what a caller needs is not multiplied"
        next_number(Order)
        assert max_of() == 65 + 128

    def test_not_beyond_max_capacity(self, waiting, settings):
        settings.HILO = {**settings.HILO, "MAX_CAPACITY": 40}
        waiting(3.0)
        next_number(Order)
        assert max_of() == 40

    def test_the_tries_that_lost_count_too(self, waiting, monkeypatch):
        failures = [deadlock()]
        find = reservation._with_prefix

        def lose(*args: Any) -> Any:
            if failures:
                raise failures.pop()
            return find(*args)

        monkeypatch.setattr(reservation, "_with_prefix", lose)
        waiting(2.0, 1.0)
        next_number(Order)
        assert max_of() == 32 * 2**3

    def test_what_someone_asked_for_stays(self, waiting):
        waiting(5.0, 5.0, 5.0)
        assert reserve("orders", 10).range.size == 10
        [reserved] = OwnSource("orders", "A").reserve("default", Wanted(5))
        assert reserved.range.size == 5
        assert reserved.waited == 5.0


@pytest.mark.skipif(CHOSEN != "sqlite", reason="It waits for all writers.")
def test_on_sqlite_nothing_grows(waiting):
    waiting(5.0)
    next_number(Order)
    assert max_of() == 32


NAMES = ("lock_timeout", "statement_timeout")


def shown(name: str, using: Any = connection) -> str:
    with using.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


@on_postgresql
class TestBounds:
    """`lock_timeout` alone starts anew with each lock that a statement waits for."""

    @pytest.fixture(params=NAMES)
    def name(self, request) -> Iterator[str]:
        yield request.param
        execute(f"RESET {request.param}")

    @pytest.fixture(autouse=True)
    def a_row(self, settings):
        reserve("orders", 1)
        next_gapless_number("orders")
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 7.0}

    @pytest.mark.parametrize(
        ("before", "within"),
        [("0", "7s"), ("2min", "7s"), ("7001", "7s"), ("6999", "6999ms"), ("1s", "1s")],
    )
    def test_of_a_reservation(self, name, before, within):
        seen = []

        def look(document: Any, prefix: str) -> dict[str, Any]:
            seen.append(shown(name))
            return {}

        execute(f"SET {name} = '{before}'")
        reservation.change_existing("orders/A", "A", "default", look)
        after = shown(name)
        execute(f"SET {name} = '{before}'")
        assert (seen, after) == ([within], shown(name))

    def test_a_statement_that_locks_no_row_may_take_long(self):
        """As one that draws a million numbers of a sequence, or looks for a maximum."""
        for locks_row, bound in ((False, "0"), (True, "7s")):
            with short_transaction("default", locks_row=locks_row):
                assert [shown(each) for each in NAMES] == ["7s", bound]

    @pytest.mark.parametrize(("before", "within"), [("0", "7s"), ("1s", "1s")])
    def test_of_a_gapless_number(self, name, before, within):
        seen = []

        def look(execute: Any, sql: str, *args: Any) -> Any:
            if "FOR UPDATE" in sql:
                seen.append(shown(name))
            return execute(sql, *args)

        with transaction.atomic():
            execute(f"SET {name} = '{before}'")
            was = shown(name)
            with connection.execute_wrapper(look):
                next_gapless_number("orders")
            assert shown(name) == was
        assert seen == [within]

    def test_after_an_error_in_a_savepoint(self, name, settings):
        settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.1}
        with stranger() as cursor, transaction.atomic():
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM django_hilo_gaplesscounter FOR UPDATE")
            execute(f"SET {name} = '2min'")
            with pytest.raises(ReservationTimeout, match=r"LOCK_TIMEOUT'\] is 0\.1 s"):
                next_gapless_number("orders")
            assert shown(name) == "2min"
