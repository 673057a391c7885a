"""Which server raised a counter last, and what the servers must be set to."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, OperationalError, connection, transaction

from django_hilo._database import servers
from django_hilo._database.connection import database_key
from django_hilo._database.dialects import dialect_of
from django_hilo.checks.replication import two_writers
from django_hilo.checks.servers import check_servers
from django_hilo.counters import raise_floor, read_max, reserve, return_range
from django_hilo.counters import reservation as counter
from django_hilo.exceptions import HiLoError, ReservationTimeout, StandbyMissing
from django_hilo.generator import next_number, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.sources import efcore, hibernate
from django_hilo.sources.storages import row, sequence
from tests.apps.numbers.models import Tag
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's settings")
with_a_name = pytest.mark.skipif(CHOSEN == "sqlite", reason="A file has no name")
on_mariadb = pytest.mark.skipif(CHOSEN != "mariadb", reason="MariaDB's settings")


def raised_by(collection: str = "orders") -> str:
    return HiLoDocument.objects.get(collection=collection, node_tag="A").raised_by


def found() -> dict[str, checks.CheckMessage]:
    return {message.id: message for message in check_servers(None, ["default"])}


@pytest.fixture
def set_back(monkeypatch):
    """Forget what servers understand, before and after the test."""
    monkeypatch.setattr(servers, "_understood", {})


class TestTheName:
    def test_is_that_of_the_server(self):
        reserve("orders")
        shape = {
            "sqlite": "",
            "postgres": r"\d{19}/0000000[1-9A-F]",
            "mariadb": r"server_id \d+",
        }[CHOSEN]
        assert re.fullmatch(shape, raised_by())

    @with_a_name
    def test_is_written_where_max_rises_only(self):
        reserve("orders", 10)
        HiLoDocument.objects.update(raised_by="")
        raise_floor("orders", 5)
        assert raised_by() == ""
        raise_floor("orders", 50)
        assert raised_by() != ""

    @with_a_name
    def test_a_return_leaves_it(self, set_back):
        next_number("orders")
        HiLoDocument.objects.update(raised_by="elsewhere")
        return_ranges()
        assert HiLoDocument.objects.get().max == 1
        assert raised_by() == "elsewhere"

    @with_a_name
    def test_is_empty_where_the_server_tells_nothing(self, set_back, monkeypatch):
        names = {connection.vendor: ("no_such_function()", "''")}
        monkeypatch.setattr(servers, "_NAMES", names)
        assert next_number("orders") == 1
        assert raised_by() == ""

    @with_a_name
    def test_a_lost_connection_is_no_answer(self, set_back, monkeypatch):
        asked = []

        def fail(db):
            asked.append(connection)
            if len(asked) == 1:
                error = OperationalError(2013, "Lost connection")
                error.sqlstate = "08006"
                raise error
            return "'x'"

        monkeypatch.setattr(servers, "_first_understood", fail)
        assert next_number("orders") == 1
        assert raised_by() == "x"


class TestARoleThatMayNotAsk:
    """Functions of the server that administrators took from all but themselves."""

    @pytest.fixture(autouse=True)
    def no_rights(self, set_back, monkeypatch):
        ask = "(SELECT concat(no_such_schema.no_such_function()))"
        monkeypatch.setattr(servers, "_NAMES", {connection.vendor: (ask, "''")})

    @with_a_name
    def test_gets_ids_inside_a_transaction(self):
        with transaction.atomic():
            Order.objects.create()
            assert Order.objects.count() == 1
        assert Order.objects.get().pk == "orders/1-A"

    @on_postgresql
    def test_is_not_judged_by_a_transaction_that_failed(self, monkeypatch):
        names = {connection.vendor: ("'known'", "''")}
        monkeypatch.setattr(servers, "_NAMES", names)
        with pytest.raises(DatabaseError), transaction.atomic():
            with connection.cursor() as cursor, suppress(DatabaseError):
                cursor.execute("SELECT * FROM no_such_table")
            assert next_number("orders") == 1
            Order.objects.count()
        assert raised_by() == "known"


class TestAnotherServer:
    @with_a_name
    def test_is_logged_once(self, caplog):
        reserve("orders")
        HiLoDocument.objects.update(raised_by="elsewhere")
        caplog.clear()
        reserve("orders")
        reserve("orders")
        (record,) = [r for r in caplog.records if "was raised by" in r.getMessage()]
        assert record.levelname == "WARNING"
        for part in ("'orders/A'", "'elsewhere'", raised_by(), "hilo_raise_max", "'A'"):
            assert part in record.getMessage()

    def test_the_first_to_raise_is_no_news(self, caplog):
        reserve("orders")
        reserve("orders")
        assert not [r for r in caplog.records if "was raised by" in r.getMessage()]

    @with_a_name
    def test_is_shown_by_check_deploy(self, capsys):
        reserve("orders")
        assert "django_hilo.W026" not in found()
        HiLoDocument.objects.update(raised_by="elsewhere")
        HiLoDocument.objects.create(collection="b", node_tag="B", raised_by="there")
        message = found()["django_hilo.W026"]
        assert "1 counters" in message.msg
        assert "elsewhere" in message.msg
        assert "orders/A" in message.msg
        assert "hilo_raise_max --database=default" in message.hint
        call_command("check", deploy=True, databases=["default"])
        assert "django_hilo.W026" in capsys.readouterr().err

    @with_a_name
    def test_is_acknowledged_by_hilo_raise_max(self, capsys):
        reserve("orders")
        reserve("of-no-model")
        HiLoDocument.objects.create(collection="b", node_tag="B", raised_by="there")
        ours = HiLoDocument.objects.filter(node_tag="A")
        ours.update(raised_by="elsewhere")
        call_command("hilo_raise_max", dry_run=True)
        assert "django_hilo.W026" in found()
        call_command("hilo_raise_max")
        assert (
            "'of-no-model/A' on 'default' is on the server" in capsys.readouterr().out
        )
        assert not found()
        assert HiLoDocument.objects.get(node_tag="B").raised_by == "there"

    @with_a_name
    def test_that_tells_no_name_is_no_other(self, set_back, caplog):
        reserve("orders")
        before = raised_by()
        servers._understood[database_key("default")] = "''"
        reserve("orders")
        assert raised_by() == before
        assert not [r for r in caplog.records if "was raised by" in r.getMessage()]
        assert not found()

    def test_of_a_fixture_is_not_taken_over(self, tmp_path):
        reserve("orders")
        before = raised_by()
        fixture = tmp_path / "counters.json"
        call_command("dumpdata", "django_hilo.HiLoDocument", output=str(fixture))
        text = fixture.read_text()
        fixture.write_text(text.replace(f'"raised_by": "{before}"', '"raised_by": "x"'))
        assert '"raised_by": "x"' in fixture.read_text()
        call_command("loaddata", str(fixture))
        assert raised_by() == before
        HiLoDocument.objects.all().delete()
        call_command("loaddata", str(fixture))
        assert raised_by() == ""

    @with_a_name
    def test_many_counters_are_counted(self):
        for number in range(15):
            reserve(f"c{number}")
        HiLoDocument.objects.update(raised_by="elsewhere")
        assert "15 counters" in found()["django_hilo.W026"].msg
        assert "and 5 more" in found()["django_hilo.W026"].msg


class TestTheDeployCheck:
    def test_finds_nothing_on_a_usual_server(self):
        reserve("orders")
        assert not found()

    def test_asks_nothing_in_tests_that_name_no_database(self):
        HiLoDocument.objects.create(collection="a", node_tag="A", raised_by="there")
        assert check_servers(None) == []

    def test_leaves_wrong_settings_to_their_own_check(self, settings):
        settings.HILO = {"NODE_TAG": 5}
        assert not found()

    def test_tells_of_a_database_that_does_not_answer(self, monkeypatch):
        def fail(connection):
            raise OperationalError("no route to host")

        monkeypatch.setattr("django_hilo.checks.servers.two_writers", fail)
        message = found()["django_hilo.I030"]
        assert "no route to host" in message.msg
        assert message.level == checks.INFO

    def test_says_nothing_before_the_first_migration(self, monkeypatch):
        def fail(connection):
            with connection.cursor() as cursor:
                cursor.execute("SELECT * FROM no_such_table")

        monkeypatch.setattr("django_hilo.checks.servers.two_writers", fail)
        assert not found()


class TestTwoWriters:
    """PostgreSQL's case with two servers is in tests/long/cluster."""

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
    def test_refuse_ids_without_a_node_tag(self, monkeypatch):
        connection.ensure_connection()
        dialect = type(dialect_of(connection))
        monkeypatch.setattr(dialect, "twice_written", lambda *_: None)
        (message,) = two_writers(connection)
        assert message.id == "django_hilo.E027"
        assert "records.Order," not in message.msg
        monkeypatch.setattr(dialect, "twice_written", lambda *_: set())
        assert not list(two_writers(connection))

    @on_mariadb
    def test_a_replica_that_is_written(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "CHANGE MASTER 'hilo_test' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1"
            )
            try:
                with pytest.raises(SystemCheckError, match="replicated to and from"):
                    call_command("check", deploy=True, databases=["default"])
            finally:
                cursor.execute("RESET SLAVE 'hilo_test' ALL")
        assert not found()


class TestCommits:
    @on_postgresql
    def test_what_reserves_nothing_needs_no_standby(self, settings):
        raise_floor("orders", 1)
        reserved = reserve("orders", 31)
        settings.HILO = {"SYNCHRONOUS_COMMIT": "on"}
        raise_floor("orders", 1)
        assert return_range("orders", 32, 5, reserved.ticket) == 5
        with pytest.raises(StandbyMissing):
            raise_floor("orders", 3)
        assert read_max("orders") == 5

    @on_postgresql
    @pytest.mark.parametrize("draw", ["own", "sequence", "column", "row", "function"])
    def test_every_draw_insists(self, draw, monkeypatch):
        insisted = []
        for module in (counter, row, sequence):
            monkeypatch.setattr(module, "insist", insisted.append)
        with connection.cursor() as cursor:
            cursor.execute("CREATE SEQUENCE test_standby INCREMENT 10")
            cursor.execute("CREATE TABLE test_standby_row (next_hi integer)")
            cursor.execute("INSERT INTO test_standby_row VALUES (1)")
        try:
            sources = {
                "own": "orders",
                "sequence": efcore.Sequence("test_standby"),
                "column": Tag,
                "row": hibernate.HiLo(9, table="test_standby_row"),
            }
            next_number(sources[draw])
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE test_standby_row")
                cursor.execute("DROP SEQUENCE test_standby")
        assert insisted

    @on_postgresql
    def test_without_a_standby_nothing_is_reserved(self, settings):
        settings.HILO = {"SYNCHRONOUS_COMMIT": "remote_apply"}
        with pytest.raises(StandbyMissing, match="synchronous_standby_names"):
            next_number("orders")
        assert not HiLoDocument.objects.filter(max__gt=0).exists()
        assert found()["django_hilo.E028"].level == checks.ERROR

    @on_postgresql
    def test_local_needs_no_standby(self, settings, caplog):
        settings.HILO = {"SYNCHRONOUS_COMMIT": "local"}
        assert next_number("orders") == 1
        assert not found()

    @on_postgresql
    def test_a_server_that_answers_before_its_disk(self, settings):
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = off")
            try:
                assert "synchronous_commit = off" in found()["django_hilo.W029"].msg
                settings.HILO = {"SYNCHRONOUS_COMMIT": "local"}
                assert not found()
            finally:
                cursor.execute("RESET synchronous_commit")

    @on_postgresql
    def test_the_level_holds_for_the_reservation_alone(self, settings, monkeypatch):
        settings.HILO = {"SYNCHRONOUS_COMMIT": "local"}
        seen = []

        def level() -> str:
            with connection.cursor() as cursor:
                cursor.execute("SHOW synchronous_commit")
                return cursor.fetchone()[0]

        told_of = counter._told_of
        monkeypatch.setattr(
            counter,
            "_told_of",
            lambda *args: (seen.append(level()), told_of(*args))[1],
        )
        reserve("orders")
        assert seen == ["local"]
        assert level() == "on"

    @on_mariadb
    def test_a_server_that_flushes_later(self, monkeypatch):
        def answer(connection, query):
            return [(0,)] if "flush" in query else [("wsrep_on", "OFF")]

        monkeypatch.setattr("django_hilo._database.dialects.mysql.rows_of", answer)
        assert "innodb_flush_log_at_trx_commit = 0" in found()["django_hilo.W029"].msg

    @on_mariadb
    def test_a_node_of_galera_may(self, monkeypatch):
        def answer(connection, query):
            return [(0,)] if "flush" in query else [("wsrep_on", "ON")]

        monkeypatch.setattr("django_hilo._database.dialects.mysql.rows_of", answer)
        assert not found()

    @pytest.mark.parametrize("value", ["off", "yes", True, 1])
    def test_other_levels_are_refused(self, settings, value):
        settings.HILO = {"SYNCHRONOUS_COMMIT": value}
        with pytest.raises(SystemCheckError, match="SYNCHRONOUS_COMMIT"):
            call_command("check")


def test_a_standby_that_is_not_named_is_no_fault_of_the_moment():
    assert issubclass(StandbyMissing, HiLoError)
    assert not issubclass(StandbyMissing, DatabaseError | ReservationTimeout)
