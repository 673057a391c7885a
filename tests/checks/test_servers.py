"""Deploy checks of the settings of a server, and of who else writes it."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import OperationalError, connection

from django_hilo.checks import servers
from django_hilo.checks.deployment import check_servers
from django_hilo.checks.inspections import OfMySQL, inspection_of
from django_hilo.checks.servers import few_connections, shared_tag, two_writers
from django_hilo.counters import reservation as counter
from django_hilo.counters import reserve
from django_hilo.generator import next_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's settings")
on_servers = pytest.mark.skipif(CHOSEN == "sqlite", reason="it has no server")
on_mysql = pytest.mark.skipif(not IS_MYSQL, reason="settings of MySQL and MariaDB")
REPLICA = {
    "mariadb": (
        "CHANGE MASTER 'hilo_test' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1",
        "RESET SLAVE 'hilo_test' ALL",
    ),
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1 "
        "FOR CHANNEL 'hilo_test'",
        "RESET REPLICA ALL FOR CHANNEL 'hilo_test'",
    ),
}


def found() -> dict[str, checks.CheckMessage]:
    return {message.id: message for message in check_servers(["default"])}


class TestTheDeployCheck:
    def test_finds_nothing_on_a_usual_server(self):
        reserve("orders")
        assert not found()

    def test_asks_nothing_in_tests_that_name_no_database(self):
        HiLoDocument.objects.create(collection="a", node_tag="A", max=MAX_NUMBER)
        assert found()
        assert list(check_servers()) == []

    def test_leaves_wrong_settings_to_their_own_check(self, settings):
        settings.HILO = {"NODE_TAG": 5}
        assert not found()

    def test_tells_of_a_database_that_does_not_answer(self, monkeypatch):
        fail = Mock(side_effect=OperationalError("no route to host"))
        monkeypatch.setattr("django_hilo.checks.deployment._OF_ALL", (fail,))
        message = found()["django_hilo.I030"]
        assert "no route to host" in message.msg
        assert message.level == checks.INFO

    def test_says_nothing_before_the_first_migration(self, monkeypatch):
        def fail(connection):
            execute("SELECT * FROM no_such_table")

        monkeypatch.setattr("django_hilo.checks.deployment._OF_ALL", (fail,))
        assert not found()


class TestTwoWriters:
    """PostgreSQL's case with two servers is in tests/long/cluster."""

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
    def test_refuse_ids_without_a_node_tag(self, monkeypatch):
        inspection = type(inspection_of(connection))
        monkeypatch.setattr(inspection, "twice_written", lambda *_: None)
        (message,) = two_writers(connection)
        assert message.id == "django_hilo.E027"
        assert "records.Order," not in message.msg
        monkeypatch.setattr(inspection, "twice_written", lambda *_: set())
        assert not list(two_writers(connection))

    @pytest.mark.parametrize("table", ['billing"."invoices', '"billing"."invoices"'])
    def test_know_the_tables_of_other_schemas(self, monkeypatch, table):
        invoice = SimpleNamespace(
            _meta=SimpleNamespace(db_table=table, label="Invoice")
        )
        monkeypatch.setattr(servers, "_models_without_tags", lambda _: [invoice])
        monkeypatch.setattr(servers, "inspection_of", lambda _: inspection)
        inspection = Mock(twice_written=lambda _: {'billing"."invoices'})
        assert "Invoice" in next(two_writers(connection)).msg
        inspection.twice_written = lambda _: {"invoices"}
        assert not list(two_writers(connection))

    @on_mysql
    def test_a_replica_that_is_written(self):
        make, drop = REPLICA[CHOSEN]
        with connection.cursor() as cursor:
            cursor.execute(make)
            try:
                with pytest.raises(SystemCheckError, match="replicated to and from"):
                    call_command("check", deploy=True, databases=["default"])
            finally:
                cursor.execute(drop)
        assert not found()


@pytest.mark.parametrize(
    ("variable", "value", "is_told"),
    [
        ("wsrep_cluster_size", "3", True),
        ("wsrep_cluster_size", "1", False),
        ("wsrep_cluster_size", "0", False),
        ("group_replication_single_primary_mode", "OFF", True),
        ("group_replication_single_primary_mode", "ON", False),
    ],
)
def test_one_node_tag_on_several_primaries(monkeypatch, variable, value, is_told):
    def answer(connection, query):
        return [(variable, value)] if variable in query else []

    monkeypatch.setattr(servers, "inspection_of", lambda _: OfMySQL())
    monkeypatch.setattr("django_hilo.checks.inspections.rows_of", answer)
    reserve("orders", node_tag="")
    assert not list(shared_tag(connection)), "integer keys have a row for all nodes"
    reserve("orders")
    told = [(each.id, "'A'" in each.msg) for each in shared_tag(connection)]
    assert told == ([("django_hilo.W035", True)] if is_told else [])
    reserve("orders", node_tag="B")
    assert not list(shared_tag(connection))


@on_mysql
def test_an_engine_without_locks():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_hilo_hilodocument ENGINE=MyISAM")
        try:
            message = found()["django_hilo.E037"]
        finally:
            cursor.execute("ALTER TABLE django_hilo_hilodocument ENGINE=InnoDB")
    assert "MyISAM" in message.msg
    assert message.level == checks.ERROR
    assert not found()


class TestCommits:
    @on_postgresql
    def test_a_standby_that_is_not_named(self, settings):
        settings.HILO = {"SYNCHRONOUS_COMMIT": "remote_apply"}
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

        monkeypatch.setattr(
            counter, "new_ticket", lambda issuer="": seen.append(level()) or issuer
        )
        reserve("orders")
        assert set(seen) == {"local"}
        assert level() == "on"

    @on_mysql
    @pytest.mark.parametrize(("galera", "is_told"), [("OFF", True), ("ON", False)])
    def test_a_server_that_flushes_later(self, monkeypatch, galera, is_told):
        """A node of Galera may: it gets its commits back from the others."""

        def answer(connection, query, parameters=None):
            answers = {
                "flush": [(0,)],
                "wsrep_on": [("wsrep_on", galera)],
                "read_only": [(1,)],
                "max_connections": [(151, 0)],
            }
            return next((rows for name, rows in answers.items() if name in query), [])

        monkeypatch.setattr("django_hilo.checks.inspections.rows_of", answer)
        told = [each.msg for each in found().values()]
        assert ["innodb_flush_log_at_trx_commit = 0" in each for each in told] == (
            [True] if is_told else []
        )

    @pytest.mark.parametrize("value", ["off", "yes", True, 1])
    def test_other_levels_are_refused(self, settings, value):
        settings.HILO = {"SYNCHRONOUS_COMMIT": value}
        with pytest.raises(SystemCheckError, match="SYNCHRONOUS_COMMIT"):
            call_command("check")


@on_servers
def test_a_limit_under_what_a_process_may_open(monkeypatch):
    inspection = inspection_of(connection)
    assert inspection.most_connections(connection) >= 40
    monkeypatch.setattr(type(inspection), "most_connections", lambda *_: 1)
    message = found()["django_hilo.W039"]
    assert message.level == checks.WARNING
    assert "limits connections to 1, but a process may open 2" in message.msg


@pytest.mark.parametrize(
    ("pool", "most"),
    [({"max_size": 10}, 11), ({"min_size": 2}, 3), (True, 5), ({}, 2), (None, 2)],
)
def test_a_limit_under_the_size_of_a_pool(monkeypatch, pool, most):
    limit = Mock()
    monkeypatch.setattr(servers, "inspection_of", lambda _: limit)
    its = {"OPTIONS": {"pool": pool}}
    wrapper = SimpleNamespace(alias="default", settings_dict=its)
    limit.most_connections.return_value = most
    assert not list(few_connections(wrapper))
    limit.most_connections.return_value = most - 1
    assert f"may open {most}" in next(few_connections(wrapper)).msg
