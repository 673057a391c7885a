"""Ranges over RavenDB's protocol: what is reserved, taken back, and answered."""

import json
import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.urls import include, path

from django_hilo.counters import reservation
from django_hilo.generator import next_id, next_number
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.ravendb import decorators, hilo_views
from django_hilo.ravendb.protocol import parse_last_range_at
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.counters import max_of, preset
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

TOKEN = "open-sesame"

urlpatterns = [path("hilo/<str:token>/", include("django_hilo.ravendb.urls"))]


@pytest.fixture(autouse=True)
def site(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"Shop": "default", "second": "other"},
        "RAVENDB_TOKENS": [sha256(t.encode()).hexdigest() for t in (TOKEN, "1")],
    }


class Raven:
    """A client as strict as a browser: with CSRF checks, and no exception hidden.

    Without a token it is the user with the name.
    """

    def __init__(self, token: str = TOKEN, user: str = "") -> None:
        basic = b64encode(f"{user}:secret".encode()).decode()
        headers = {"authorization": f"Basic {basic}"} if user else {}
        self.http = Client(enforce_csrf_checks=True, headers=headers)
        self.prefix = f"/raven/{token}/" if token else "/raven/"

    def url(self, rest: str, database: str = "shop") -> str:
        return f"{self.prefix}databases/{database}/hilo/{rest}"

    def next(self, tag: str = "orders", database: str = "shop", **query: Any) -> Any:
        return self.http.get(self.url("next", database), {"tag": tag, **query})

    def taken(self, tag: str = "orders", **query: Any) -> dict[str, Any]:
        response = self.next(tag, **query)
        assert response.status_code == 201, response.content
        return response.json()

    def numbers(self, tag: str = "orders", **query: Any) -> range:
        body = self.taken(tag, **query)
        return range(body["Low"], body["High"] + 1)

    def give_back(
        self, end: object, last: object, tag: str = "orders", database: str = "shop"
    ) -> int:
        query = f"?tag={tag}&end={end}&last={last}"
        response = self.http.put(self.url("return", database) + query)
        assert response.content == b"" or response.status_code >= 400
        return response.status_code


@pytest.fixture
def raven() -> Raven:
    return Raven()


class TestNext:
    def test_the_whole_answer(self, raven):
        response = raven.next(
            lastBatchSize=0, lastRangeAt="", identityPartsSeparator="/", lastMax=0
        )

        assert response.status_code == 201
        assert response["Content-Type"] == "application/json"
        body = response.json()
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", body.pop("LastRangeAt")
        )
        assert body == {
            "Prefix": "orders/",
            "Low": 1,
            "High": 32,
            "LastSize": 32,
            "ServerTag": "A",
        }
        assert max_of() == 32

    def test_capacity_should_double(self, raven):
        """The Python client sends LastRangeAt back without its Z, not escaped."""
        first = raven.taken()
        sent = first["LastRangeAt"].removesuffix("Z")
        query = f"?tag=orders&lastBatchSize=32&lastRangeAt={sent}&lastMax=32"
        second = raven.http.get(raven.url("next") + query).json()

        assert (second["Low"], second["High"], second["LastSize"]) == (33, 96, 64)

    @pytest.mark.parametrize("digits", range(8))
    def test_capacity_doubles_however_many_digits_a_time_has(self, raven, digits):
        """RavenDB's Go client trims the zeros of LastRangeAt."""
        at = raven.taken()["LastRangeAt"].removesuffix("Z")
        at = at[: at.index(".") + digits + 1].removesuffix(".") + "Z"
        assert raven.taken(lastBatchSize=32, lastRangeAt=at)["LastSize"] == 64

    def test_times_without_time_zones(self, raven, settings):
        """The clock of the site and that of the protocol differ by hours."""
        settings.USE_TZ, settings.TIME_ZONE = False, "America/New_York"
        first = raven.taken()
        again = {"lastBatchSize": 32, "lastRangeAt": first["LastRangeAt"]}
        assert raven.taken(**again)["LastSize"] == 64
        said = parse_last_range_at(first["LastRangeAt"])
        assert abs(datetime.now(UTC) - said) < timedelta(minutes=5)

    def test_one_counter_with_django_and_whatever_the_case(self, raven):
        assert next_id(Order) == "orders/1-A"
        assert raven.numbers("Orders") == range(33, 65)
        assert raven.numbers("ORDERS") == range(65, 97)
        assert next_id(Order) == "orders/2-A"
        assert raven.numbers("orders")[0] == 97

    def test_the_prefix_keeps_the_callers_case_and_separator(self, raven):
        assert raven.taken("Orders")["Prefix"] == "Orders/"
        assert raven.taken("oRders", identityPartsSeparator="!")["Prefix"] == "oRders!"

    def test_no_separator_means_the_servers(self, raven, settings):
        settings.HILO = {**settings.HILO, "SEPARATOR": ":"}
        assert raven.taken()["Prefix"] == "orders:"
        assert raven.taken(identityPartsSeparator=" ")["Prefix"] == "orders:"

    def test_the_servers_prefix_stands_before_the_number(self, raven):
        ServerPrefix.objects.create(node_tag="A", prefix="NorthServer/")

        assert raven.taken()["Prefix"] == "orders/NorthServer/"

    def test_the_server_tag_is_a_text_also_where_ids_hide_it(self, raven, settings):
        settings.HILO = {**settings.HILO, "SHOW_NODE_TAG": False}
        assert raven.taken()["ServerTag"] == "A"

    @pytest.mark.skipif(CHOSEN == "postgres", reason="a sequence lends no ranges")
    def test_a_server_tag_for_counters_without_one(self, raven):
        assert raven.taken("numbers_item")["ServerTag"] == "A"

    def test_each_name_has_its_database(self, raven):
        """HiLo_Async_MultiDb."""
        preset(64)

        assert raven.numbers("orders", database="SHOP")[0] == 65
        assert raven.numbers("orders", database="second")[0] == 1
        assert raven.taken("orders", database="second")["ServerTag"] == "B"
        assert max_of(using="other", tag="B") == 64

    def test_a_fields_capacities_bound_the_range(self, raven, monkeypatch):
        field = Order._meta.get_field("id")
        monkeypatch.setattr(field, "capacity", 5)
        monkeypatch.setattr(field, "max_capacity", 10)

        assert len(raven.numbers("ORDERS")) == 5
        assert len(raven.numbers("orders", lastBatchSize=1_000)) == 10


class TestLastMax:
    def test_hilo_cannot_go_down(self, raven):
        preset(32)
        seen = [*raven.numbers()]
        HiLoDocument.objects.update(max=12)

        for _ in range(3):
            seen += raven.numbers(lastMax=seen[-1])

        assert len(seen) == len(set(seen)) == 128

    def test_of_a_deleted_counter(self, raven):
        high = raven.numbers()[-1]
        HiLoDocument.objects.all().delete()
        assert raven.numbers(lastMax=high)[0] == high + 1

    @pytest.mark.parametrize("last_max", [-1, -(2**63)])
    def test_it_is_not_negative(self, raven, last_max):
        assert raven.numbers(lastMax=last_max)[0] == 1

    def test_a_jump_over_the_setting_is_refused(self, raven, settings, caplog):
        """A lower number would be in use already: the counter has fallen back."""
        settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 1_000}
        preset(500)

        response = raven.next(lastMax=1_501)
        assert response.status_code == 400
        for told in (response.json()["Error"], caplog.text):
            assert "lastMax is 1501, more than 1000 (HILO['MAX_FLOOR_JUMP'])" in told
        assert max_of() == 500
        assert raven.numbers(lastMax=1_500)[0] == 1_501

    def test_nothing_passes_the_highest_number(self, raven):
        preset(2**63 - 1 - 32)

        assert raven.numbers(lastMax=2**63 - 33)[-1] == 2**63 - 1
        response = raven.next(lastMax=2**63 - 1)

        assert response.status_code == 400
        assert "2^63-1" in response.json()["Error"]
        assert max_of() == 2**63 - 1


class TestReturn:
    def test_the_unused_end_goes_back(self, raven):
        """Return_Unused_Range_On_Dispose."""
        preset(32)
        high = raven.numbers()[-1]

        assert raven.give_back(high, 34) == 204
        assert max_of() == 34
        assert raven.numbers()[0] == 35

    @pytest.mark.parametrize("last", [32, 0, -5, 65, 99, -(2**63), 2**63 - 1])
    def test_last_outside_the_range_changes_nothing(self, raven, last):
        """RavenDB would give 1 to 32 again for 0, and set Max to -5."""
        raven.numbers()
        raven.numbers()
        assert raven.give_back(64, last) == 204
        assert max_of() == 64

    def test_only_the_newest_range(self, raven):
        raven.numbers()
        raven.numbers()
        assert raven.give_back(32, 5) == 204
        assert max_of() == 64

    def test_twice(self, raven):
        raven.numbers()
        assert raven.give_back(32, 5) == 204
        assert raven.give_back(32, 5) == 204
        assert raven.give_back(5, 3) == 204
        assert max_of() == 5

    def test_replayed_after_somebody_else_got_the_numbers(self, raven):
        """Max is that of the first return's range again, the numbers are not."""
        preset(32)
        assert raven.numbers(lastBatchSize=64) == range(33, 97)
        raven.give_back(96, 64)
        assert raven.numbers() == range(65, 97)

        assert raven.give_back(96, 64) == 204

        assert max_of() == 96

    def test_after_a_failed_request_of_the_client(self, raven):
        assert raven.give_back(0, 1) == 204
        assert not HiLoDocument.objects.exists(), "a return makes no counter"

    def test_of_a_range_of_another_client(self, raven):
        """Nobody returns what another client uses, whichever credentials they have."""
        for key, name in enumerate(("one", "two"), 1):  # a token has the key of one
            User.objects.create_superuser(name, password="secret", pk=key)
        callers = [raven, Raven("1"), Raven("", "one"), Raven("", "two")]
        for issued, owner in enumerate(callers, 1):
            owner.numbers()
            for other in callers:
                if other is not owner:
                    assert other.give_back(32 * issued, 32 * issued - 31) == 204
                    assert max_of() == 32 * issued
        assert owner.give_back(128, 100) == 204
        assert max_of() == 100

    def test_two_clients_with_one_token_are_one_caller(self, raven):
        raven.numbers()
        assert Raven().give_back(32, 7) == 204
        assert max_of() == 7

    def test_of_a_range_that_was_issued_elsewhere(self, raven):
        assert next_number(Order) == 1
        assert raven.give_back(32, 1) == 204
        assert max_of() == 32

        issued = reservation.reserve("orders", 10)
        assert raven.give_back(issued.range.high, issued.range.low) == 204
        assert max_of() == 42

    @pytest.mark.skipif(CHOSEN == "postgres", reason="Sequences take nothing back.")
    def test_of_integer_keys(self, raven):
        lent = raven.numbers("numbers_item")
        assert raven.give_back(lent[-1], lent[9], "numbers_item") == 204
        assert Item.objects.create().pk == lent[9] + 1

    def test_in_another_database(self, raven):
        raven.numbers(database="second")
        assert raven.give_back(32, 3, database="shop") == 204
        assert max_of(using="other", tag="B") == 32
        assert raven.give_back(32, 3, database="second") == 204
        assert max_of(using="other", tag="B") == 3


class TestTopology:
    def test_names_this_server_under_the_same_path(self, raven):
        response = raven.http.get(
            f"/raven/{TOKEN}/topology?name=SHOP&first-topology-update",
            headers={"host": "ids.example:8443"},
            secure=True,
        )
        assert response.status_code == 200
        assert response.json() == {
            "Nodes": [
                {
                    "Url": f"https://ids.example:8443/raven/{TOKEN}",
                    "ClusterTag": "A",
                    "Database": "SHOP",
                    "ServerRole": "Member",
                }
            ],
            "Etag": 1,
        }

    @pytest.fixture(autouse=True)
    def _any_host(self, settings):
        settings.ALLOWED_HOSTS = ["ids.example", "testserver"]

    def test_of_an_unknown_database(self, raven):
        response = raven.http.get(f"/raven/{TOKEN}/topology?name=other")
        assert response.status_code == 400
        assert "RAVENDB_DATABASES" in response.json()["Message"]

    def test_a_host_that_is_not_allowed(self, raven, caplog):
        response = raven.http.get(
            f"/raven/{TOKEN}/topology?name=shop", headers={"host": "evil.example"}
        )
        assert response.status_code == 400
        assert "evil.example" in response.json()["Error"]
        assert TOKEN not in caplog.text

    def test_behind_a_proxy(self, raven, settings):
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        settings.USE_X_FORWARDED_HOST = True
        settings.FORCE_SCRIPT_NAME = "/ids"
        response = raven.http.get(
            f"/raven/{TOKEN}/topology?name=shop",
            headers={"x-forwarded-proto": "https", "x-forwarded-host": "ids.example"},
        )
        url = response.json()["Nodes"][0]["Url"]
        assert url == f"https://ids.example/ids/raven/{TOKEN}"


@pytest.mark.urls("tests.ravendb.test_ranges")
def test_the_token_may_stand_in_the_sites_own_path():
    http = Client()
    url = f"/hilo/{TOKEN}/databases/shop/hilo/next?tag=orders"
    assert http.get(url).json()["High"] == 32
    base = http.get(f"/hilo/{TOKEN}/topology?name=shop").json()["Nodes"][0]["Url"]
    assert base == f"http://testserver/hilo/{TOKEN}"
    assert http.get("/hilo/wrong/databases/shop/hilo/next").status_code == 401


class TestHttp:
    ALL_MIDDLEWARE = [
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.cache.UpdateCacheMiddleware",
        "django.middleware.gzip.GZipMiddleware",
        "django.middleware.http.ConditionalGetMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]

    def test_behind_all_of_djangos_middleware(self, raven, settings):
        """A cached answer, or a 304, would be one range for two clients."""
        settings.MIDDLEWARE = self.ALL_MIDDLEWARE
        settings.CACHE_MIDDLEWARE_SECONDS = 600
        settings.CACHES = {
            "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
        }
        seen: list[int] = []
        for _ in range(3):
            response = raven.next()
            assert response.status_code == 201
            assert not response.has_header("ETag")
            seen += range(response.json()["Low"], response.json()["High"] + 1)
        assert len(set(seen)) == 96
        assert raven.give_back(96, 70) == 204

        topology = f"/raven/{TOKEN}/topology?name=shop"
        assert raven.http.get(topology).status_code == 200
        settings.HILO = {**settings.HILO, "RAVENDB_TOKENS": []}
        assert raven.http.get(topology).status_code == 401, "nothing was cached"

    def test_every_answer_forbids_to_store_it(self, raven):
        answers = [
            raven.next(),
            raven.next("1"),
            raven.http.put(raven.url("return?tag=orders&end=32&last=3")),
            raven.http.get(f"/raven/{TOKEN}/topology?name=shop"),
            raven.http.get("/raven/nothing/here"),
            raven.http.get("/raven/databases/shop/hilo/next"),
        ]
        assert [answer.status_code for answer in answers] == [
            201,
            400,
            204,
            200,
            404,
            401,
        ]
        for answer in answers:
            assert "no-store" in answer["Cache-Control"]
            assert not answer.has_header("ETag")

    @pytest.mark.parametrize(
        ("rest", "allowed"), [("next", "GET"), ("return", "PUT"), ("topology", "GET")]
    )
    def test_other_methods_do_nothing(self, raven, rest, allowed):
        url = f"/raven/{TOKEN}/topology" if rest == "topology" else raven.url(rest)
        methods = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"}
        for method in methods - {allowed}:
            response = raven.http.generic(method, url + "?tag=orders&end=1&last=1")

            assert response.status_code == 405
            assert response["Allow"] == allowed
            assert set(response.json()) == {"Url", "Type", "Message", "Error"}
        assert raven.http.head(url + "?tag=orders&end=1&last=1").status_code == 405
        assert not HiLoDocument.objects.exists()

    @pytest.mark.parametrize(
        "rest",
        [
            "",
            "x",
            "databases/shop/hilo/next/",
            "databases/shop/hilo/return/",
            "topology/",
            "databases/shop/docs?id=orders/1",
            "cluster/node-info",
            "databases//hilo/next",
            "a/b/c/d/e/f",
        ],
    )
    @pytest.mark.parametrize("token", ["", f"{TOKEN}/"])
    def test_all_other_paths_are_404_in_json(self, raven, settings, rest, token):
        """Nor are those with a slash redirected: a PUT would be lost."""
        settings.MIDDLEWARE = self.ALL_MIDDLEWARE
        settings.DEBUG = True
        for send in (raven.http.get, raven.http.put, raven.http.post):
            response = send(f"/raven/{token}{rest}")
            assert response.status_code == 404
            assert set(response.json()) == {"Url", "Type", "Message", "Error"}
            assert TOKEN not in response.text

    def test_a_body_of_any_size_is_ignored(self, raven):
        raven.numbers()
        url = raven.url("return?tag=orders&end=32&last=3")
        body = b"x" * 10_000_000
        assert raven.http.put(url, body, "application/json").status_code == 204
        assert max_of() == 3

    def test_too_many_parameters(self, raven):
        response = raven.http.get(raven.url("next?") + "a=1&" * 2_000)
        assert response.status_code == 400
        assert set(response.json()) == {"Url", "Type", "Message", "Error"}

    def test_an_error_tells_the_url_without_the_prefix(self, raven):
        body = raven.next("1x").json()
        assert body["Url"] == "/databases/shop/hilo/next?tag=1x"
        assert body["Type"] == "System.ArgumentException"
        assert body["Error"] == f"System.ArgumentException: {body['Message']}"
        assert "'1x'" in body["Message"]

    @pytest.mark.parametrize("name", ["default", "shopp", "{0}", "a" * 500, "%00"])
    def test_unknown_databases_are_refused(self, raven, name):
        response = raven.next(database=name)
        assert response.status_code == 400, "of a 404 no client shows the message"
        assert "RAVENDB_DATABASES" in response.json()["Error"]
        assert "Shop" not in response.text, "nor are the known ones told"
        assert len(response.json()["Message"]) < 250
        assert not HiLoDocument.objects.exists()


class TestTransactions:
    @pytest.fixture(autouse=True)
    def _atomic_requests(self, monkeypatch):
        for alias in connections:
            # Read by Django's handler from the settings of each connection.
            monkeypatch.setitem(connections.settings[alias], "ATOMIC_REQUESTS", True)

    def test_the_range_is_committed_before_the_answer(self, raven, monkeypatch):
        inside = []

        def unstored(response):
            inside.append((connection.in_atomic_block, max_of()))
            return response

        monkeypatch.setattr(decorators, "_unstored", unstored)
        raven.numbers()
        assert inside == [(False, 32)]

    def test_an_error_after_the_reservation_burns_it(self, raven, monkeypatch):
        monkeypatch.setattr(hilo_views, "IdFormat", lambda *parts: 1 / 0)
        assert raven.next().status_code == 500
        monkeypatch.undo()
        assert raven.numbers()[0] == 33
        assert json.loads(raven.next("x y").content)["Type"]
