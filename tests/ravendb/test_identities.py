"""Identities over RavenDB's protocol: gapless numbers taken, seeded and listed."""

from base64 import b64encode
from hashlib import sha256
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from django_hilo.counters import gapless, next_gapless_number, seed_gapless_number
from django_hilo.exceptions import ReservationTimeout
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.signals import Change, counter_changed
from tests.apps.records.models import Letter

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

TOKEN = "open-sesame"


@pytest.fixture(autouse=True)
def site(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"Shop": "default", "second": "other"},
        "RAVENDB_TOKENS": [sha256(TOKEN.encode()).hexdigest()],
    }


class Raven:
    """A client as strict as a browser, whose user has the permissions named."""

    def __init__(self, *permissions: str) -> None:
        self.http = Client(enforce_csrf_checks=True)
        self.user = User.objects.create_user("robot", password="pa:ss")
        for permission in permissions:
            self.user.user_permissions.add(Permission.objects.get(codename=permission))
        self.headers = {"authorization": f"Basic {b64encode(b'robot:pa:ss').decode()}"}

    def send(self, rest: str, database: str = "shop", method: str = "POST") -> Any:
        url = f"/raven/databases/{database}/{rest}"
        return self.http.generic(method, url, headers=self.headers)

    def next(self, name: str = "users", database: str = "shop") -> int:
        response = self.send(f"identity/next?name={name}", database)
        assert response.status_code == 200, response.content
        return response.json()["NewIdentityValue"]

    def seed(self, rest: str, database: str = "shop") -> int:
        response = self.send(f"identity/seed?name={rest}", database)
        assert response.status_code == 200, response.content
        return response.json()["NewSeedValue"]

    def identities(self, query: str = "", database: str = "shop") -> dict[str, int]:
        response = self.send(f"debug/identities{query}", database, "GET")
        assert response.status_code == 200, response.content
        return response.json()


@pytest.fixture
def raven() -> Raven:
    return Raven("take_hilo_ids", "change_gaplesscounter", "view_gaplesscounter")


class TestNextAndSeed:
    def test_ravendbs_vectors(self, raven):
        """NextAndSeedIdentities; the next number is taken by Django and over HTTP."""
        assert next_gapless_number("users") == 1
        assert raven.next("users") == 2
        assert next_gapless_number("users") == 3
        assert raven.identities() == {"users|": 3}
        assert raven.seed("users&value=1990") == 1990
        assert next_gapless_number("users") == 1991
        assert raven.seed("users&value=1975") == 1991
        assert raven.seed("users&value=1975&force=false") == 1991
        assert raven.seed("users&value=1975&force=true") == 1975
        assert raven.next("users") == 1976

    def test_one_counter_with_or_without_a_bar_and_whatever_the_case(self, raven):
        names = ["users", "users|", "Users|", "USERS", "users%7C"]
        assert [raven.next(name) for name in names] == [1, 2, 3, 4, 5]
        assert raven.seed("uSers|&value=9&force=TRUE") == 9
        assert raven.identities() == {"users|": 9}

    @pytest.mark.parametrize("database", ["shop", "second"])
    def test_an_unknown_name_makes_the_identity(self, raven, database):
        assert raven.next("Person|", database) == 1
        assert raven.next("person", database) == 2
        assert raven.identities(database=database) == {"person|": 2}

    def test_of_rows_with_gapless_ids(self, raven):
        assert raven.next("letters") == 1
        assert Letter.objects.create().pk == "letters/2"
        assert raven.next("Letters|") == 3

    def test_a_hilo_counter_makes_a_collection_known(self, raven):
        HiLoDocument.objects.create(collection="person", node_tag="A", max=32)
        assert raven.next("Person") == 1

    def test_each_name_has_its_database(self, raven, settings):
        assert raven.next(database="SHOP") == 1
        assert raven.seed("users&value=7", "second") == 7
        assert raven.identities(database="second") == {"users|": 7}
        assert raven.next() == 2

    def test_counters_are_on_the_database_of_the_rows(self, raven, settings):
        settings.HILO = {**settings.HILO, "DATABASE": "other"}
        assert raven.next() == 1
        assert next_gapless_number("users", "default") == 2
        assert raven.seed("person&value=4") == 4
        assert raven.next("person") == 5
        assert not GaplessCounter.objects.using("other").exists()

    def test_the_highest_number_is_the_last(self, raven):
        assert raven.seed(f"users&value={MAX_NUMBER}") == MAX_NUMBER
        response = raven.send("identity/next?name=users")
        assert response.status_code == 400
        assert "2^63-1" in response.json()["Message"]

    def test_a_locked_counter(self, raven, monkeypatch):
        fail = Mock(side_effect=ReservationTimeout("db.internal"))
        monkeypatch.setattr(gapless, "next_gapless_number", fail)
        monkeypatch.setattr(gapless, "seed_gapless_number", fail)
        for rest in ("next?name=users", "seed?name=users&value=1"):
            response = raven.send(f"identity/{rest}")
            assert response.status_code == 503
            assert "db.internal" not in response.text


class TestIdentities:
    def test_none(self, raven):
        assert raven.identities() == {}

    def test_pages_go_by_name(self, raven):
        for name in ("b", "d", "A", "c"):
            seed_gapless_number(name, 5)
        assert list(raven.identities()) == ["a|", "b|", "c|", "d|"]
        assert list(raven.identities("?start=1&pageSize=2")) == ["b|", "c|"]
        assert list(raven.identities("?start=3")) == ["d|"]
        assert raven.identities("?pageSize=0") == {}
        assert raven.identities(f"?start={MAX_NUMBER}&pageSize={MAX_NUMBER}") == {}


@pytest.mark.parametrize(
    "rest",
    [
        "identity/next",
        "identity/next?name=",
        "identity/next?name=users||",
        "identity/next?name=1x",
        "identity/next?name=users&name=orders",
        "identity/seed?name=users",
        "identity/seed?value=5",
        "identity/seed?name=users&value=-1",
        "identity/seed?name=users&value=x",
        f"identity/seed?name=users&value={MAX_NUMBER + 1}",
        "identity/seed?name=users&value=5&force=yes",
        "debug/identities?start=-1",
        "debug/identities?pageSize=x",
    ],
)
def test_bad_parameters_change_nothing(raven, rest):
    response = raven.send(rest, method="GET" if "debug" in rest else "POST")
    assert response.status_code == 400
    assert set(response.json()) == {"Url", "Type", "Message", "Error"}
    assert not GaplessCounter.objects.exists()


ENDPOINTS = {
    "identity/next?name=users": ("POST", "take_hilo_ids"),
    "identity/seed?name=users&value=5": ("POST", "change_gaplesscounter"),
    "debug/identities": ("GET", "view_gaplesscounter"),
}
each_endpoint = pytest.mark.parametrize("rest", ENDPOINTS)


@each_endpoint
def test_other_methods_and_slashes_do_nothing(raven, rest):
    allowed, _ = ENDPOINTS[rest]
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} - {allowed}:
        response = raven.send(rest, method=method)
        assert response.status_code == 405
        assert response["Allow"] == allowed
    path, _, query = rest.partition("?")
    assert raven.send(f"{path}/?{query}", method=allowed).status_code == 404
    assert not GaplessCounter.objects.exists()


class TestSignal:
    @pytest.fixture
    def changes(self, heard):
        return heard(counter_changed)

    def test_of_seeds(self, raven, changes):
        raven.seed("Users&value=1990", "second")
        raven.seed("users|&value=1975&force=true", "second")
        facts = {
            "sender": GaplessCounter,
            "using": "other",
            "collection": "users",
            "user": raven.user,
        }
        assert changes == [
            {**facts, "change": Change.RAISED, "old": 0, "new": 1990},
            {**facts, "change": Change.LOWERED, "old": 1990, "new": 1975},
        ]

    def test_not_of_what_changes_nothing_nor_of_numbers_taken(self, raven, changes):
        seed_gapless_number("users", 7)
        raven.seed("users&value=7")
        raven.seed("users&value=3")
        raven.next()
        assert changes == []
