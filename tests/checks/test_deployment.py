"""Deploy checks of numbers that run out."""

import os

import pytest
from django.core import checks
from django.db import OperationalError, ProgrammingError, connection, models
from django.test.utils import isolate_apps

from django_hilo._allocation.find import resolve
from django_hilo.checks import _ALWAYS, _BEFORE_DEPLOYMENT
from django_hilo.checks.deployment import check_servers
from django_hilo.checks.renamed import check_renamed
from django_hilo.counters import next_gapless_numbers
from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.generator import next_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter, HiLoDocument, ServerPrefix
from django_hilo.sources import database
from tests.apps.numbers.models import Crate
from tests.apps.records.models import (
    Order,
    Sortable,
)
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(databases=["default", "other"]),
]
on_a_server = pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one integer")


def found(id: str, using: str = "default") -> list[checks.CheckMessage]:
    messages = list(check_servers([using]))
    return [message for message in messages if message.id == f"django_hilo.{id}"]


class TestTheEndOfTheNumbers:
    NEAR = MAX_NUMBER // 10 * 9

    def test_of_a_counter(self):
        HiLoDocument.objects.create(collection="a", node_tag="A", max=self.NEAR)
        assert not found("W032")
        HiLoDocument.objects.create(collection="b", node_tag="B", max=self.NEAR + 1)
        HiLoDocument.objects.create(collection="c", floor=MAX_NUMBER)
        GaplessCounter.objects.create(collection="d", last=self.NEAR + 1)
        assert [message.msg.partition(" is at ")[0] for message in found("W032")] == [
            "The counter 'b/B' on 'default'",
            "The counter 'c/' on 'default'",
            "The gapless counter 'd' on 'default'",
        ]

    def test_of_a_width(self, monkeypatch):
        monkeypatch.setattr(Sortable._meta.pk, "width", 4)
        HiLoDocument.objects.create(collection="sortables", node_tag="A", max=8991)
        assert not found("W033")
        HiLoDocument.objects.update(max=8992)
        (message,) = found("W033")
        assert "records.Sortable are at 8992, and width=4 allows at most 9999" in (
            message.msg
        )
        assert "id__number" in message.hint

    def test_of_max_length(self, monkeypatch):
        monkeypatch.setattr(Order._meta.pk, "max_length", len("orders/9999-A"))
        HiLoDocument.objects.create(collection="orders", node_tag="A", max=950)
        assert not found("W033")
        ServerPrefix.objects.create(node_tag="A", prefix="N")
        assert "max_length=13 allows at most 999." in found("W033")[0].msg
        ServerPrefix.objects.update(prefix="NorthServer/")
        assert "max_length=13 allows at most 0." in found("W033")[0].msg

    @on_a_server
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        ("kind", "highest"), [("integer", 2_147_483_647), ("smallint", 32_767)]
    )
    def test_of_a_column(self, kind, highest):
        """A table that somebody else made, or that was narrowed by hand."""
        source = resolve(Crate).source
        assert not found("W033")
        try:
            self.alter(kind)
            source.raise_floor("default", highest // 10 * 9)
            assert not found("W033")
            next_number(Crate)
            (message,) = found("W033")
            assert "numbers.Crate" in message.msg
            assert f"column 'id' allows at most {highest}." in message.msg
        finally:
            if CHOSEN == "postgres":
                # It has a type of its own, which changes with the column's.
                execute("ALTER SEQUENCE numbers_crate_id_seq RESTART")
            self.alter("bigint")

    def alter(self, kind: str) -> None:
        change = (
            f"MODIFY id {kind} AUTO_INCREMENT"
            if IS_MYSQL
            else f"ALTER COLUMN id TYPE {kind}"
        )
        execute(f"ALTER TABLE numbers_crate {change}")


@pytest.mark.django_db(transaction=True)
class TestTablesThatIntrospectionCannotSee:
    """Of another schema of PostgreSQL, another database of MariaDB or SQLite."""

    @pytest.fixture
    def fields(self, monkeypatch):
        """The keys of two models with such tables, named as some projects do."""
        schema, quote = f"elsewhere_{os.getpid()}", "`" if IS_MYSQL else '"'
        make, drop = {
            "postgres": ("CREATE SCHEMA {}", "DROP SCHEMA {} CASCADE"),
            "sqlite": ("ATTACH ':memory:' AS {}", "DETACH {}"),
        }.get(CHOSEN, ("CREATE DATABASE {}", "DROP DATABASE {}"))
        execute(make.format(schema))
        keys = HiLoBigAutoField(primary_key=True), HiLoField(primary_key=True)
        for name, key in zip(("crate", "box"), keys, strict=True):
            named = {
                "app_label": "numbers",
                "db_table": f"{schema}{quote}.{quote}{name}",
            }
            meta = type("Meta", (), named)
            with isolate_apps("tests.apps.numbers"):
                type(name, (models.Model,), {"__module__": "", "id": key, "Meta": meta})
            with connection.schema_editor() as editor:
                editor.create_model(key.model)
        for module in "deployment", "renamed":
            monkeypatch.setattr(
                f"django_hilo.checks.{module}.fields_on", lambda _: keys
            )
        yield keys
        execute(drop.format(schema))

    def test_are_named_and_end_no_other_check(self, fields):
        number, text = fields
        text.width = 4
        HiLoDocument.objects.create(collection="boxes", node_tag="A", max=9990)
        (message,) = found("I030")
        assert message.msg.startswith(f"The column of {number} on 'default' could not")
        assert found("W033")

    def test_a_renamed_model_with_such_a_table_is_seen(self, fields):
        fields[1].model(id="purchases/1-A").save_base(raw=True, force_insert=True)
        (message,) = check_renamed(["default"])
        assert message.id == "django_hilo.W117"


def named(check) -> str:
    return check.__qualname__


@pytest.mark.parametrize("check", [*_ALWAYS, _BEFORE_DEPLOYMENT], ids=named)
@pytest.mark.parametrize("error", [OperationalError, ProgrammingError])
def test_each_check_survives_what_the_database_refuses(settings, check, error):
    """And says so, if it asks the database."""
    settings.HILO = {
        "NODE_TAG": {"default": "A", "other": "B"},
        "SHOW_NODE_TAG": False,
        "SOURCES": {"orders": database.Sequence("order_numbers")},
    }
    asked = []

    def refuse(execute, sql, *args):
        if sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            return execute(sql, *args)
        asked.append(sql)
        raise error("permission denied")

    with connection.execute_wrapper(refuse):
        told = check(app_configs=None, databases=["default"])
    refused = [each for each in told if "permission denied" in each.msg]
    assert bool(refused) == bool(asked)


def test_nothing_is_found_in_a_project_that_is_well():
    Order.objects.create()
    next_gapless_numbers("letters", 3)
    assert not [m for m in check_servers(["default"]) if m.id[-3:] >= "031"]
