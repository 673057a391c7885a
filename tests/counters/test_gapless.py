import re
import time
from contextlib import contextmanager, nullcontext
from threading import Barrier

import pytest
from django.core import serializers
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import signals
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from django_hilo.counters import (
    next_gapless_number,
    next_gapless_numbers,
    seed_gapless_number,
)
from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    HiLoError,
    InvalidDocumentId,
    ReservationTimeout,
)
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter
from tests.apps.records.models import Letter
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute
from tests.support.threads import in_thread, in_threads

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_numbers_follow_each_other_whatever_the_case():
    assert [next_gapless_number(name) for name in ("invoices", "Invoices")] == [1, 2]
    assert next_gapless_number("orders") == 1


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_first_callers_at_once_get_the_numbers_one_by_one():
    barrier = Barrier(6)

    def first(_):
        barrier.wait()
        return next_gapless_number("letters")

    for _ in range(5):
        assert sorted(in_threads(6, first)) == [1, 2, 3, 4, 5, 6]
        GaplessCounter.objects.all().delete()


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
@pytest.mark.parametrize(
    "write",
    [
        lambda: next_gapless_number("letters"),
        lambda: seed_gapless_number("letters", 1),
        lambda: seed_gapless_number("letters", 50, force=True),
    ],
)
def test_it_waits_no_longer_than_the_lock_timeout(settings, write):
    settings.HILO = {"LOCK_TIMEOUT": 1}
    next_gapless_number("letters")

    def other():
        with pytest.raises(ReservationTimeout, match="'letters'"):
            write()

    with transaction.atomic():
        next_gapless_number("letters")
        began = time.monotonic()
        in_thread(other)
        assert time.monotonic() - began < 30, "the server's own bound is 50 s"
    assert next_gapless_number("letters") == 3


# MariaDB's, which has it ON from 11.6.2 on: a change of a newer row is an error.
SNAPSHOT = "innodb_snapshot_isolation"


@contextmanager
def old_snapshot(collection, is_strict=False):
    """Read before another raises the counter to 1,000, and not see it after that."""
    seed_gapless_number(collection, 5)
    with snapshots(is_strict), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert GaplessCounter.objects.get().last == 5
        in_thread(lambda: seed_gapless_number(collection, 1000))
        assert GaplessCounter.objects.get().last == 5
        yield


@contextmanager
def snapshots(is_strict):
    if not execute(f"SHOW VARIABLES LIKE '{SNAPSHOT}'"):
        yield
        return
    execute(f"SET {SNAPSHOT} = {is_strict}")
    try:
        yield
    finally:
        execute(f"SET {SNAPSHOT} = DEFAULT")


@pytest.mark.skipif(CHOSEN != "mariadb", reason="of MariaDB")
def test_a_server_that_refuses_newer_rows_says_so():
    with (
        pytest.raises(ConcurrencyError, match="Repeat the transaction"),
        old_snapshot("mails", is_strict=True),
    ):
        next_gapless_number("mails")
    assert next_gapless_number("mails") == 1001


class AnotherNode:
    """Commit first, as on another node of Galera: our transaction is rolled back.

    The server reports it to the statement that follows the locked read.
    """

    number = None
    _has_read = False

    def __call__(self, execute, sql, params, many, context):
        if self._has_read and self.number is None:
            context["connection"].connection.rollback()
            self.number = in_thread(lambda: next_gapless_number("letters"))
            raise OperationalError(1213, "Deadlock found when trying to get lock")
        result = execute(sql, params, many, context)
        self._has_read = "FOR UPDATE" in sql
        return result


@pytest.mark.skipif(not IS_MYSQL, reason="of Galera")
class TestAnotherNodeCommitsFirst:
    @pytest.mark.parametrize("within", [nullcontext, transaction.atomic])
    @pytest.mark.parametrize(
        "write",
        [
            lambda: next_gapless_number("letters"),
            lambda: seed_gapless_number("letters", 1),
            lambda: Letter().save(),
        ],
    )
    def test_its_number_is_not_given_again(self, within, write):
        waits, other = execute("SELECT @@innodb_lock_wait_timeout"), AnotherNode()
        error = pytest.raises(ConcurrencyError, match="Repeat the transaction")
        with within(), connection.execute_wrapper(other), error:
            write()
        assert other.number == 1
        assert execute("SELECT @@innodb_lock_wait_timeout") == waits
        assert not Letter.objects.exists()
        assert next_gapless_number("letters") == 2

    def test_a_caller_who_catches_the_error_cannot_go_on(self):
        with transaction.atomic():
            next_gapless_number("mails")
            error = pytest.raises(ConcurrencyError)
            with connection.execute_wrapper(AnotherNode()), error:
                next_gapless_number("letters")
            with pytest.raises(TransactionManagementError):
                next_gapless_number("mails")
        assert next_gapless_number("mails") == 1


def test_a_transaction_that_is_broken_already():
    Letter().save()
    taken = Letter.objects.get()
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            taken.save(force_insert=True)
        with pytest.raises(TransactionManagementError):
            next_gapless_number("mails")


@pytest.mark.skipif(CHOSEN != "postgres", reason="of PostgreSQL")
def test_a_callers_own_lock_timeout_comes_back():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '77s'")
        next_gapless_number("letters")
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("77s",)


@pytest.mark.skipif(CHOSEN != "postgres", reason="of PostgreSQL")
def test_it_comes_back_after_an_error_too(settings):
    settings.HILO = {"LOCK_TIMEOUT": 1}
    next_gapless_number("letters")

    def other():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '77s'")
            with pytest.raises(ReservationTimeout):
                next_gapless_number("letters")
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("77s",)

    with transaction.atomic():
        next_gapless_number("letters")
        in_thread(other)


@pytest.mark.skipif(CHOSEN != "postgres", reason="of PostgreSQL")
def test_the_bound_takes_two_statements():
    next_gapless_number("letters")
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        next_gapless_number("letters")
    starts = " ".join(query["sql"].split()[0] for query in queries)
    assert starts == "SAVEPOINT SELECT SELECT SELECT UPDATE RELEASE"


def test_a_row_and_its_number_have_one_savepoint():
    Letter().save()
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        Letter().save()
    starts = [query["sql"].split()[0] for query in queries]
    assert starts.count("SAVEPOINT") == 1
    assert starts.count("UPDATE") == 1


def test_a_missing_table_names_the_command():
    with connection.schema_editor() as editor:
        editor.delete_model(GaplessCounter)
    try:
        for call in (next_gapless_number, lambda name: seed_gapless_number(name, 1)):
            with pytest.raises(
                HiLoError, match="migrate django_hilo --database=default"
            ):
                call("invoices")
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(GaplessCounter)
    assert next_gapless_number("invoices") == 1


class TestFixtures:
    def load(self, collection: str, last: int) -> None:
        text = (
            f'[{{"model": "django_hilo.gaplesscounter", "pk": "{collection}", '
            f'"fields": {{"last": {last}}}}}]'
        )
        for item in serializers.deserialize("json", text):
            item.save()

    @pytest.mark.parametrize("within", [transaction.atomic, nullcontext])
    def test_none_lowers_a_counter(self, within):
        seed_gapless_number("mails", 7)
        for collection, last, kept in (
            ("mails", 5, 7),
            ("Mails", 6, 7),
            ("mails", 9, 9),
            ("Mails", 10, 10),
        ):
            with within():
                self.load(collection, last)
            rows = GaplessCounter.objects.values_list("collection", "last")
            assert list(rows) == [("mails", kept)]

    @pytest.mark.parametrize("within", [transaction.atomic, nullcontext])
    def test_a_new_counter_is_in_lower_case(self, within):
        with within():
            self.load("Mails", 5)
        assert next_gapless_number("mails") == 6
        assert GaplessCounter.objects.count() == 1

    def test_only_the_database_of_the_fixture_counts(self):
        seed_gapless_number("mails", 7, "other")
        self.load("mails", 5)
        assert next_gapless_number("mails") == 6

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
    def test_the_number_is_read_under_the_lock(self, settings, receive):
        settings.HILO = {"LOCK_TIMEOUT": 1}
        seed_gapless_number("mails", 7)
        others = []

        def take_meanwhile(raw, **kwargs):
            with pytest.raises(ReservationTimeout):
                in_thread(lambda: next_gapless_number("mails"))
            others.append(raw)

        receive(signals.pre_save, take_meanwhile, GaplessCounter)
        with transaction.atomic():
            self.load("mails", 5)
        assert others == [True]
        assert next_gapless_number("mails") == 8

    @pytest.mark.skipif(not IS_MYSQL, reason="of MariaDB")
    def test_it_is_the_newest_in_an_old_snapshot_too(self):
        with old_snapshot("mails"):
            self.load("mails", 7)
        assert next_gapless_number("mails") == 1001


def test_a_save_may_lower_a_counter_and_stores_lower_case():
    seed_gapless_number("mails", 7)
    GaplessCounter(collection="Mails", last=3).save()
    assert next_gapless_number("mails") == 4
    GaplessCounter.objects.create(collection="Letters", last=3)
    assert next_gapless_number("letters") == 4
    assert GaplessCounter.objects.count() == 2


def test_a_bad_collection_makes_no_row():
    with pytest.raises(InvalidDocumentId):
        next_gapless_number("7up")
    assert not GaplessCounter.objects.exists()


def test_some_numbers_at_once():
    assert next_gapless_numbers("invoices", 3) == range(1, 4)
    assert next_gapless_number("Invoices") == 4
    assert next_gapless_numbers("Invoices", 2) == range(5, 7)
    assert GaplessCounter.objects.get().last == 6


def test_one_statement_takes_a_million():
    with CaptureQueriesContext(connection) as queries:
        assert next_gapless_numbers("invoices", 1_000_000)[-1] == 1_000_000
    assert sum("INSERT" in query["sql"] for query in queries) == 1


def test_no_number_is_taken_where_too_few_are_left():
    GaplessCounter.objects.create(collection="invoices", last=MAX_NUMBER - 2)
    with pytest.raises(CounterExhausted, match="too soon for 3"):
        next_gapless_numbers("invoices", 3)
    assert next_gapless_numbers("invoices", 2)[-1] == MAX_NUMBER
    with pytest.raises(CounterExhausted, match="'invoices'"):
        next_gapless_number("invoices")


@pytest.mark.parametrize("last", [2**62 + 1, MAX_NUMBER])
def test_the_most_at_once(last):
    GaplessCounter.objects.create(collection="invoices", last=last)
    with pytest.raises(CounterExhausted):
        next_gapless_numbers("invoices", 2**62 - 1)
    assert GaplessCounter.objects.get().last == last
    assert next_gapless_numbers("letters", 2**62 - 1) == range(1, 2**62)


@pytest.mark.parametrize("n", [0, -1, True, 1.0, "1", None, 2**62])
def test_a_bad_count_makes_no_row(n):
    with pytest.raises(ValueError, match=re.escape(f"not {n!r}")):
        next_gapless_numbers("invoices", n)
    assert not GaplessCounter.objects.exists()


class TestSeed:
    @pytest.mark.parametrize("force", [True, False])
    @pytest.mark.parametrize("value", [0, 7, MAX_NUMBER])
    def test_of_a_new_counter(self, value, force):
        assert seed_gapless_number("users", value, force=force) == value
        assert GaplessCounter.objects.get(pk="users").last == value

    def test_in_the_callers_transaction(self):
        seed_gapless_number("users", 7)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert seed_gapless_number("users", 50) == 50
            assert next_gapless_number("users") == 51
            raise ZeroDivisionError
        assert next_gapless_number("users") == 8

    @pytest.mark.parametrize("value", [-1, MAX_NUMBER + 1, True, 1.0, "1", None])
    @pytest.mark.parametrize("force", [True, False])
    def test_a_bad_value_makes_no_row(self, value, force):
        with pytest.raises(InvalidDocumentId, match=re.escape(str(value))):
            seed_gapless_number("users", value, force=force)
        assert not GaplessCounter.objects.exists()

    @pytest.mark.skipif(not IS_MYSQL, reason="of MariaDB")
    def test_what_stays_is_the_newest_number_in_an_old_snapshot_too(self):
        with old_snapshot("users"):
            assert seed_gapless_number("users", 7) == 1000
