"""System checks of counters that other systems own: each fault, with what to do."""

from typing import Any
from unittest.mock import Mock

import pytest
from django.core import checks
from django.db import Error, models
from django.test.utils import isolate_apps

from django_hilo.checks.fields import check_model
from django_hilo.checks.models import check_integers
from django_hilo.checks.settings import check_settings
from django_hilo.checks.sources import check_other_writers, check_sources
from django_hilo.fields import HiLoBigAutoField
from django_hilo.sources import doctrine, hibernate, nhibernate
from django_hilo.sources.storages import catalog
from tests.apps.numbers.models import Item
from tests.support import foreign
from tests.support.databases import IS_MYSQL

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])
make = foreign.make

HILO = hibernate.HiLo(9)
DBAL = doctrine.Table("orders")
OF_SOURCES = {"E021", "E022", "E023", "W024", "E026", "E112"}


def with_sources(settings: Any, sources: Any) -> None:
    settings.HILO = {"NODE_TAG": {"default": "A", "other": "B"}, "SOURCES": sources}


def run(*databases: str) -> list[checks.CheckMessage]:
    """What `manage.py check --database` and `migrate` tell of sources."""
    found = checks.run_checks(databases=databases or None)
    return [m for m in found if str(m.id).removeprefix("django_hilo.") in OF_SOURCES]


def only(messages: list[checks.CheckMessage]) -> tuple[str, str]:
    [message] = messages
    assert message.hint
    is_error = str(message.id).startswith("django_hilo.E")
    assert isinstance(message, checks.Error if is_error else checks.Warning)
    return str(message.id).removeprefix("django_hilo."), f"{message.msg} {message.hint}"


class TestSettings:
    @pytest.mark.parametrize(
        "sources",
        [
            [HILO],
            None,
            "orders",
            {"orders": "hibernate.HiLo"},
            {"orders": hibernate.HiLo},
            {"orders": None},
            {5: HILO},
        ],
    )
    def test_what_is_no_dict_of_sources(self, settings, sources):
        with_sources(settings, sources)
        id, text = only(check_settings())
        assert id == "E022"
        assert repr(sources) in text
        assert "a dict of collections and sources" in text
        assert list(check_sources(databases=["default", "other"])) == []
        list(check_other_writers(databases=["default", "other"]))
        assert only(run("default")) == (id, text), "told once, and nothing fails"

    def test_a_name_that_is_no_collection(self, settings):
        with_sources(settings, {"or/ders": HILO})
        id, text = only(check_settings())
        assert id == "E022"
        assert "'or/ders'" in text

    def test_what_is_right(self, settings, make):
        make(foreign.DBAL)
        with_sources(settings, {"orders": DBAL, "numbers_item": DBAL})
        assert list(check_settings()) == []
        assert run("default") == []


class TestCatalog:
    def test_no_database_is_asked_unless_it_is_named(self, settings):
        with_sources(settings, {"tickets": HILO})
        assert run() == []
        assert run("other") == [], "a collection without a model is on 'default'"
        assert [message.id for message in run("default", "other")] == [
            "django_hilo.W024"
        ]

    def test_a_collection_is_looked_up_where_its_rows_are(self, settings, make):
        make(foreign.DBAL)
        with_sources(settings, {"ORDERS": DBAL})
        assert run("default") == []
        id, text = only(run("default", "other"))
        assert id == "W024"
        assert "no table 'sequences' on 'other'" in text

    def test_a_source_of_many_is_told_once(self, settings):
        with_sources(settings, {"orders": HILO, "users": HILO, "numbers_item": HILO})
        assert only(run("default"))[0] == "W024"

    @pytest.mark.parametrize(
        ("column", "id", "told"),
        [
            ("next_hi", "W024", "has no row"),
            ("hi", "E023", "has no column hi, but has next_hi. Correct the names"),
        ],
    )
    def test_a_certain_fault_is_an_error(self, settings, make, column, id, told):
        make(foreign.UNIQUE_KEY)
        with_sources(settings, {"tickets": hibernate.HiLo(9, column=column)})
        found = only(run("default"))
        assert found[0] == id
        assert told in found[1]

    def test_a_catalog_that_cannot_be_read(self, settings, monkeypatch):
        fail = Mock(side_effect=Error("no rights"))
        monkeypatch.setattr(catalog, "columns_of", fail)
        with_sources(settings, {"tickets": HILO})
        id, text = only(run("default"))
        assert id == "W024"
        assert "cannot be read: no rights. Grant" in text


HIBERNATE = {"sequence": "orders_seq"}


@pytest.mark.parametrize(
    "preset", [hibernate.Pooled, hibernate.PooledLo, hibernate.EnhancedHiLo]
)
class TestVersions:
    def test_a_version_is_asked_for(self, settings, preset):
        with_sources(settings, {"orders": preset(50, **HIBERNATE)})
        id, text = only(run())
        assert id == "E026"
        assert "HILO['SOURCES']['orders']" in text
        assert 'version="6.4.4"' in text
        assert "hibernate-core" in text
        with_sources(settings, {"orders": preset(50, version="6.4", **HIBERNATE)})
        assert run() == []

    def test_of_a_field_too(self, monkeypatch, preset):
        monkeypatch.setattr(Item._meta.pk, "source", preset(50, **HIBERNATE))
        id, text = only(run())
        assert id == "E026"
        assert "numbers.Item.id" in text


class TestFields:
    @isolate_apps("tests.apps.numbers")
    def test_a_source_that_is_none(self):
        class Bolt(models.Model):
            id = HiLoBigAutoField(primary_key=True, source="hibernate")

            class Meta:
                app_label = "numbers"

        id, text = only(check_model(Bolt))
        assert id == "E112"
        assert (
            "The source 'hibernate' is not a source. Use one of django_hilo.so" in text
        )

    @isolate_apps("tests.apps.numbers")
    def test_a_source_of_a_field_is_looked_up(self, monkeypatch):
        class Bolt(models.Model):
            id = HiLoBigAutoField(primary_key=True, source=HILO)

            class Meta:
                app_label = "numbers"

        monkeypatch.setattr(
            "django_hilo._operations.locations.counter_fields", lambda: fields_of(Bolt)
        )
        id, text = only(check_sources(databases=["default"]))
        assert id == "W024"
        assert "hibernate_unique_key" in text

    @pytest.mark.parametrize(
        ("sources", "named", "expected"),
        [
            ([None, None], {}, ["E021"]),
            ([None, HILO], {}, []),
            ([HILO, HILO], {}, []),
            ([None, None], {"Shared": HILO}, []),
        ],
    )
    @isolate_apps("tests.apps.numbers")
    def test_integer_keys_that_share_a_collection(
        self, settings, monkeypatch, sources, named, expected
    ):
        class Bolt(models.Model):
            id = HiLoBigAutoField(
                primary_key=True, collection="shared", source=sources[0]
            )

            class Meta:
                app_label = "numbers"

        class Nut(models.Model):
            id = HiLoBigAutoField(
                primary_key=True, collection="SHARED", source=sources[1]
            )

            class Meta:
                app_label = "numbers"

        with_sources(settings, named)
        monkeypatch.setattr(
            "django_hilo.checks.models.counter_fields", lambda: fields_of(Bolt, Nut)
        )
        found = check_integers()
        assert [only([each])[0] for each in found] == expected
        for message in found:
            assert "numbers.Bolt, numbers.Nut share the collection 'shared'" in (
                message.msg
            )
            assert "the same source" in message.hint


def fields_of(*models_: type[models.Model]) -> list[Any]:
    return [model._meta.pk for model in models_]


class TestOneCounter:
    @pytest.mark.parametrize(
        ("other", "expected"),
        [
            (hibernate.HiLo(9), []),
            (hibernate.HiLo(9, max_number=1000), []),
            (hibernate.HiLo(10), ["E024"]),
            (nhibernate.HiLo(4), ["E024"]),
            (hibernate.HiLo(10, column="other"), []),
        ],
    )
    def test_it_has_one_rule(self, settings, make, other, expected):
        make(
            "CREATE TABLE hibernate_unique_key (next_hi bigint, other bigint)",
            "INSERT INTO hibernate_unique_key VALUES (0, 0)",
        )
        with_sources(settings, {"orders": HILO, "tickets": other})
        found = list(check_sources(databases=["default"]))
        assert [str(m.id).removeprefix("django_hilo.") for m in found] == expected
        for message in found:
            assert "HiLo(block=10, shift=0, first=0)" in message.msg
            assert message.hint


class TestOtherWriters:
    def test_auto_increment_is_warned_of_on_mariadb_alone(self, settings):
        found = list(check_other_writers(databases=["default"]))
        if not IS_MYSQL:
            assert found == []
            return
        id, text = only(found)
        assert id == "W025"
        assert "numbers.Item" in text
        assert "AUTO_INCREMENT" in text
        assert "SILENCED_SYSTEM_CHECKS" in text
        assert [m.id for m in checks.run_checks(databases=["default"])].count(
            "django_hilo.W025"
        ) == 1
        assert list(check_other_writers()) == []

    @pytest.mark.skipif(not IS_MYSQL, reason="it is MariaDB's")
    def test_not_where_a_source_gives_the_keys(self, settings):
        with_sources(settings, {"NUMBERS_ITEM": HILO})
        [message] = check_other_writers(databases=["default"])
        assert "numbers.Item," not in message.msg
        assert "numbers.Tag" in message.msg


def test_names_that_differ_in_case_only(settings):
    with_sources(settings, {"Orders": HILO, "orders": hibernate.HiLo(5)})
    (message,) = check_settings()
    assert message.id == "django_hilo.E022"


def test_an_error_that_a_migration_mends_says_how(settings, make):
    make("CREATE TABLE hibernate_unique_key (other bigint)")
    with_sources(settings, {"orders": HILO})
    (message,) = check_sources(databases=["default"])
    assert message.id == "django_hilo.E023"
    assert "migrate --skip-checks" in message.hint
