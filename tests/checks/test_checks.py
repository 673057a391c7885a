from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from inspect import signature
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks
from django.db import connections, models
from django.db.models import Value
from django.db.models.functions import Length
from django.test.utils import isolate_apps

from django_hilo import checks as hilo_checks
from django_hilo.checks import databases as database_checks
from django_hilo.checks import fields as field_checks
from django_hilo.checks import models as model_checks
from django_hilo.checks import settings as settings_checks
from django_hilo.conf import KEYS
from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet
from django_hilo.models import ServerPrefix
from tests.apps.records.models import Claim, Invoice, Order, named
from tests.support.databases import CHOSEN

CHECKS = hilo_checks.__name__


def ids(found: Iterable[checks.CheckMessage]) -> list[str]:
    messages = list(found)
    for message in messages:
        assert message.hint
        assert " Name " not in message.hint.replace(". Name ", "")  # a sentence each
    return [str(message.id).removeprefix("django_hilo.") for message in messages]


def settings_with(settings: Any, **given: Any) -> None:
    settings.HILO = {"NODE_TAG": {"default": "A", "other": "B"}, **given}


def test_hidden_tags_and_server_ids(settings):
    assert own_ids(Claim) == []
    settings_with(settings, SHOW_NODE_TAG=False)
    assert own_ids(Claim) == ["E108"]


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, []),
            ({"CAPACTIY": 5}, ["E001"]),
            ({"NODE_TAG": "a"}, ["E002"]),
            ({"NODE_TAG": "TOOLONG"}, ["E002"]),
            ({"NODE_TAG": ""}, ["E002"]),
            ({"NODE_TAG": {"default": "a"}}, ["E002"]),
            ({"NODE_TAG": {"nowhere": "A"}}, ["E002"]),
            ({"NODE_TAG": 7}, ["E002"]),
            ({"SEPARATOR": "-"}, ["E003"]),
            ({"SEPARATOR": "//"}, ["E003"]),
            ({"SEPARATOR": None}, ["E003"]),
            ({"SEPARATOR": ":"}, []),
            ({"DATABASE": "nowhere"}, ["E004"]),
            ({"SHOW_NODE_TAG": "yes"}, ["E005"]),
            ({"CAPACITY": 0}, ["E005"]),
            ({"CAPACITY": True}, ["E005"]),
            ({"MAX_CAPACITY": "9"}, ["E005"]),
            ({"MAX_FLOOR_JUMP": -1}, ["E005"]),
            ({"LOCK_TIMEOUT": 0}, ["E005"]),
            ({"RETRY_FOR": None}, ["E005"]),
            ({"LOCK_TIMEOUT": float("inf")}, ["E005"]),
            ({"LOCK_TIMEOUT": 0.5, "RETRY_FOR": 1}, []),
            ({"MAX_NUMBERS_PER_REQUEST": 0}, ["E005"]),
            ({"RAVENDB_DATABASES": {"shop": "default"}}, []),
            ({"RAVENDB_DATABASES": {"shop": "nowhere"}}, ["E010"]),
            ({"RAVENDB_DATABASES": {"a/b": "default"}}, ["E010"]),
            ({"RAVENDB_DATABASES": ["shop"]}, ["E010"]),
            ({"RAVENDB_TOKENS": ["0f" * 32]}, []),
            ({"RAVENDB_TOKENS": "0f" * 32}, ["E011"]),
            ({"RAVENDB_TOKENS": ["0F" * 32]}, ["E011"]),
            ({"RAVENDB_TOKENS": [None]}, ["E011"]),
        ],
    )
    def test_values(self, settings, given, expected):
        settings_with(settings, **given)
        assert ids(settings_checks.check_settings()) == expected

    def test_it_must_be_a_dict(self, settings):
        settings.HILO = "A"
        (message,) = settings_checks.check_settings()
        assert ids([message]) == ["E001"]
        assert "Write HILO = {'NODE_TAG': 'A'}" in str(message.hint)

    def test_without_settings(self, settings):
        del settings.HILO
        assert list(settings_checks.check_settings()) == []

    def test_the_message_names_value_and_remedy(self, settings):
        settings_with(settings, CAPACTIY=5, SEPARATOR="-")
        unknown, wrong = settings_checks.check_settings()
        assert unknown.msg == "'CAPACTIY' is not a key of HILO."
        assert "CAPACITY" in str(unknown.hint)
        assert wrong.msg == "HILO['SEPARATOR'] is '-'."

    @pytest.mark.parametrize(
        ("given", "end"),
        [
            (
                {"NODE_TAG": {"nowhere": "A"}},
                "alias. DATABASES has no alias 'nowhere'.",
            ),
            ({"NODE_TAG": {"default": "a"}}, "or a dict of them by database alias."),
            ({"SOURCES": {"orders": "hibernate"}}, "HiLo(max_lo=9), without quotes."),
        ],
    )
    def test_the_hint_names_the_entry_that_is_wrong(self, settings, given, end):
        settings_with(settings, **given)
        [wrong] = settings_checks.check_settings()
        assert str(wrong.hint).endswith(end)

    def test_a_token_in_place_of_its_digest_is_not_shown(self, settings):
        settings_with(settings, RAVENDB_TOKENS=["swordfish"])
        (message,) = settings_checks.check_settings()
        assert "swordfish" not in f"{message.msg} {message.hint}"

    def test_every_key_is_checked(self):
        assert {key for key, *_ in settings_checks._RULES} == KEYS

    def test_each_that_is_written_is_registered_once(self):
        registry = checks.registry.registry
        every = [*registry.registered_checks, *registry.deployment_checks]
        names = [each.__qualname__ for each in every if each.__module__ == CHECKS]
        written = {
            name
            for module in pkgutil.iter_modules(hilo_checks.__path__)
            for name, found in vars(import_module(f"{CHECKS}.{module.name}")).items()
            if name.startswith("check_") and "kwargs" in signature(found).parameters
        }
        assert sorted(names) == sorted(written)

    def test_they_run_as_they_are_registered(self, settings):
        settings.HILO = {"CAPACTIY": 5}
        assert "django_hilo.E001" in [each.id for each in checks.run_checks()]


class TestHomes:
    def test_a_tag_for_each_database(self):
        assert list(database_checks.check_homes()) == []

    def test_one_tag_for_two_databases(self, settings):
        settings.HILO = {"NODE_TAG": "A"}
        (warning,) = database_checks.check_homes()
        assert ids([warning]) == ["W007"]
        assert "default, other" in warning.msg

    @pytest.mark.parametrize("by_router", [False, True])
    def test_counters_away_from_their_rows(self, settings, by_router):
        if by_router:
            settings.DATABASE_ROUTERS = ["tests.support.routers.CountersOnOther"]
        else:
            settings_with(settings, DATABASE="default")
        expected = ["E006"] if CHOSEN == "sqlite" else []
        assert ids(database_checks.check_homes()) == expected

    def test_a_database_that_is_not_tested(self, monkeypatch):
        monkeypatch.setattr(type(connections["default"]), "vendor", "oracle")
        found = list(database_checks.check_homes())
        assert "W034" in ids(found)
        assert "'default'" in next(m.msg for m in found if m.id.endswith("W034"))

    @pytest.mark.django_db(databases=["default", "other"])
    def test_hidden_tags_need_different_prefixes(self, settings):
        aliases = ["default", "other"]
        assert list(database_checks.check_hidden_tags(aliases)) == []
        settings_with(settings, SHOW_NODE_TAG=False)
        assert list(database_checks.check_hidden_tags()) == []
        assert ids(database_checks.check_hidden_tags(aliases)) == ["E009"]
        settings_with(settings, SHOW_NODE_TAG=False, DATABASE="default")
        assert list(database_checks.check_hidden_tags(aliases)) == []
        settings_with(settings, SHOW_NODE_TAG=False)
        ServerPrefix.objects.using("other").create(node_tag="B", prefix="South/")
        assert list(database_checks.check_hidden_tags(aliases)) == []


def own_ids(model: type[models.Model]) -> list[str]:
    messages = field_checks.check_model(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apps, "get_models", lambda **options: [model])
        messages += model_checks.check_managers()
    return ids(messages)


def model(name: str, key: models.Field[Any, Any], **attributes: Any) -> Any:
    """Make a model whose primary key is a field."""
    key.primary_key = True
    meta = type("Meta", (), {"app_label": "records"})
    attributes = {"__module__": __name__, "Meta": meta, "id": key, **attributes}
    with isolate_apps("tests.apps.records"):
        return type(name, (models.Model,), attributes)


class TestFields:
    @pytest.mark.parametrize(
        ("field", "expected"),
        [
            (HiLoField, []),
            (lambda: HiLoField(collection="1x"), ["E101"]),
            (lambda: HiLoField(collection="a/b"), ["E101"]),
            (lambda: HiLoField(anchor=lambda o: "x"), ["E102"]),
            (lambda: HiLoField(anchor=ids), []),
            (lambda: HiLoField(anchor="nothing"), ["E103"]),
            (lambda: HiLoField(anchor="note__x"), ["E103"]),
            (lambda: HiLoField(anchor="note"), []),
            (lambda: HiLoField(anchor="other"), []),
            (lambda: HiLoField(anchor="other__order"), []),
            (lambda: HiLoField(anchor="day"), ["E103"]),
            (lambda: HiLoField(anchor="size"), ["E103"]),
            (lambda: HiLoField(anchor="code"), []),
            (lambda: HiLoField(anchor="other", max_length=60), ["E104"]),
            (lambda: HiLoField(max_length=27), ["E104"]),
            (lambda: HiLoField(max_length=28), []),
            (lambda: HiLoField(max_length="20"), []),  # Django's own check tells
            (lambda: HiLoField(capacity=0), ["E105"]),
            (lambda: HiLoField(capacity=9, max_capacity=8), ["E105"]),
            (lambda: HiLoField(max_capacity=8), ["E105"]),
            (lambda: HiLoField(capacity="9"), ["E105"]),
            (lambda: HiLoField(capacity=True), ["E105"]),
            (lambda: HiLoField(anchor="id"), ["E103"]),
            (lambda: HiLoField(anchor="many"), ["E103"]),
            (lambda: HiLoField(default="x"), ["E106"]),
            (lambda: HiLoField(convention=ids), []),
            (lambda: HiLoField(convention=named), []),
            (lambda: HiLoField(convention=ids, max_length=9), []),
            (lambda: HiLoField(convention=lambda o, i: i), ["E102"]),
            (lambda: HiLoField(convention="ids"), ["E102"]),
            (lambda: HiLoField(width=19), []),
            (lambda: HiLoField(width=1), []),
            (lambda: HiLoField(width=0), ["E107"]),
            (lambda: HiLoField(width=20), ["E107"]),
            (lambda: HiLoField(width="9"), ["E107"]),
            (lambda: HiLoField(width=True), ["E107"]),
            (lambda: HiLoField(server_ids=True), []),
            (GaplessIdField, []),
            (lambda: GaplessIdField(collection="1x"), ["E101"]),
            (lambda: GaplessIdField(collection=5), ["E101"]),
            (lambda: GaplessIdField(max_length=25), ["E104"]),
            (lambda: GaplessIdField(max_length=26), []),
            (lambda: GaplessIdField(default="x"), ["E106"]),
        ],
    )
    def test_arguments(self, field, expected):
        attributes = {
            "note": models.CharField(max_length=20),
            "code": models.CharField(max_length=20, db_default=Value("K")),
            "day": models.DateField(auto_now_add=True),
            "size": models.GeneratedField(
                expression=Length("note"),
                output_field=models.IntegerField(),
                db_persist=True,
            ),
            "other": models.ForeignKey(Invoice, models.CASCADE, related_name="+"),
            "many": models.ManyToManyField(Invoice, related_name="+"),
        }
        thing = model("Thing", field(), objects=HiLoManager(), **attributes)
        assert own_ids(thing) == expected

    def test_fields_of_installed_models_are_checked(self, monkeypatch):
        def found(app: str) -> list[str]:
            return ids(checks.run_checks([apps.get_app_config(app)], ["models"]))

        monkeypatch.setattr(Order._meta.get_field("id"), "width", 99)
        assert "E107" in found("records")
        assert "E107" not in found("django_hilo")

    def test_a_class_name_outside_the_grammar(self):
        assert own_ids(model("Größe", HiLoField(), objects=HiLoManager())) == ["E101"]

    def test_a_plain_manager_beside_several_databases(self, monkeypatch):
        thing = model("Thing", HiLoField())
        assert own_ids(thing) == ["W107"]
        monkeypatch.delitem(django_settings.DATABASES, "other")
        assert own_ids(thing) == []

    def test_a_manager_built_from_the_queryset(self):
        manager = HiLoQuerySet.as_manager()
        assert own_ids(model("Thing", HiLoField(), objects=manager)) == []
