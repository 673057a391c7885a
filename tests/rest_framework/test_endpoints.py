"""The endpoints one by one."""

import io
import json
from unittest.mock import Mock

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse
from rest_framework.test import APIClient

from django_hilo.counters import floor, reserve
from django_hilo.exceptions import ConcurrencyError, HiLoError, ReservationTimeout
from django_hilo.identifiers import MAX_NUMBER, parse
from django_hilo.models import GaplessCounter, HiLoDocument, ServerPrefix
from django_hilo.rest_framework import bodies, views
from django_hilo.signals import counter_changed
from tests.apps.records.models import Letter, Order
from tests.support.databases import CHOSEN
from tests.support.sql import hide_table

pytestmark = pytest.mark.django_db(databases=["default", "other"])

NEXT = "/hilo/collections/orders/next-id/"
RANGES = "/hilo/collections/orders/ranges/"
RETURN = "/hilo/collections/orders/ranges/return/"
DOCUMENT = "/hilo/documents/orders/A/"


@pytest.fixture
def boss():
    return User.objects.create_superuser("boss", password="secret")


@pytest.fixture
def client(boss):
    client = APIClient(raise_request_exception=True)
    client.force_authenticate(boss)
    client.default_format = "json"
    return client


def post(client: APIClient, address: str, body: object = None):
    return client.post(address, body if body is not None else {}, format="json")


@pytest.fixture
def changes(heard):
    return heard(counter_changed)


class TestAddresses:
    @pytest.mark.parametrize(
        ("name", "arguments", "address"),
        [
            ("documents", [], "documents/"),
            ("document", ["orders", "-"], "documents/orders/-/"),
            ("next-id", ["orders"], "collections/orders/next-id/"),
            ("ranges", ["orders"], "collections/orders/ranges/"),
            ("range-return", ["orders"], "collections/orders/ranges/return/"),
            ("prefixes", [], "prefixes/"),
            ("prefix", ["A"], "prefixes/A/"),
            ("gapless-next", ["orders"], "gapless/orders/next/"),
        ],
    )
    def test_names(self, name, arguments, address):
        assert reverse(f"django_hilo:{name}", args=arguments) == f"/hilo/{address}"


class TestDocuments:
    def test_any_case_and_no_tag(self, client):
        reserve("orders", 32)
        reserve("numbers", 7, node_tag="")
        assert client.get("/hilo/documents/ORDERS/A/").status_code == 200
        answer = client.get("/hilo/documents/numbers/-/")
        assert (answer.json()["node_tag"], answer.json()["max"]) == ("", 7)

    @pytest.mark.parametrize(
        "place", ["ordres/A", "orders/B", "orders/-", "orders/a", "7up/A", "a.b/A"]
    )
    def test_what_is_not_there(self, client, place):
        reserve("orders", 32)
        answer = client.get(f"/hilo/documents/{place}/")
        assert answer.status_code == 404
        assert answer.json()["detail"]

    def test_a_list_in_pages(self, client):
        HiLoDocument.objects.bulk_create(
            HiLoDocument(id=f"c{n:03}/A", collection=f"c{n:03}", node_tag="A")
            for n in range(250)
        )
        answer = client.get("/hilo/documents/").json()
        assert (answer["count"], len(answer["results"])) == (250, 100)
        answer = client.get("/hilo/documents/", {"page": 3}).json()
        assert len(answer["results"]) == 50
        assert answer["next"] is None
        answer = client.get("/hilo/documents/", {"page_size": 1000}).json()
        assert len(answer["results"]) == 250

    def test_filters_search_and_order(self, client):
        for collection, tag, size in [
            ("orders", "A", 5),
            ("orders", "B", 9),
            ("invoices", "", 7),
        ]:
            reserve(collection, size, node_tag=tag)

        def keys(**query: str) -> list[str]:
            rows = client.get("/hilo/documents/", query).json()["results"]
            return [f"{row['collection']}/{row['node_tag']}" for row in rows]

        assert keys() == ["invoices/", "orders/A", "orders/B"]
        assert keys(collection="ORDERS") == ["orders/A", "orders/B"]
        assert keys(node_tag="B") == ["orders/B"]
        assert keys(node_tag="-") == ["invoices/"]
        assert keys(search="voic") == ["invoices/"]
        assert keys(ordering="-max") == ["orders/B", "invoices/", "orders/A"]

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({"page_size": "0"}, "1 to 1000"),
            ({"page_size": "1001"}, "1 to 1000"),
            ({"page_size": "x"}, "1 to 1000"),
            ({"page": "0"}, "from 1"),
            ({"ordering": "ticket"}, "ticket"),
            ({"node_tag": "a"}, "required pattern"),
            ({"collection": "7up"}, "7up"),
            ({"collection": "a\x00"}, "Null characters"),
            ({"search": "\x00"}, "search"),
            ({"search": "a " * 2_000}, "no more than 100 characters"),
            ({"database": "nowhere"}, "default, other"),
            ({"database": "a\x00"}, "default, other"),
        ],
    )
    def test_queries_that_are_wrong(self, client, query, names):
        answer = client.get("/hilo/documents/", query)
        assert answer.status_code == 400
        assert names in answer.content.decode()

    def test_pages_of_equal_rows_do_not_overlap(self, client):
        for collection in ("b", "d", "a", "c"):
            reserve(collection, 5)
        with CaptureQueriesContext(connection) as queries:
            client.get("/hilo/documents/", {"ordering": "max"})
        (rows,) = [q["sql"] for q in queries if "ORDER BY" in q["sql"]]
        assert rows.partition("ORDER BY")[2].count(",") == 1


class TestRaisingMax:
    def test_raise(self, client, boss, changes):
        reserve("orders", 32)
        answer = client.patch(DOCUMENT, {"max": 500}, format="json")
        assert answer.status_code == 200
        assert answer.json()["max"] == 500
        assert HiLoDocument.objects.get(pk="orders/A").max == 500
        [facts] = changes
        assert facts["sender"] is HiLoDocument
        assert (facts["user"], facts["change"]) == (boss, "raised")
        assert (facts["old"], facts["new"]) == (32, 500)

    def test_lowering_is_refused(self, client, changes):
        reserve("orders", 32)
        answer = client.patch(DOCUMENT, {"max": 31}, format="json")
        assert answer.status_code == 409
        assert "is now 32" in answer.json()["detail"]
        assert HiLoDocument.objects.get(pk="orders/A").max == 32
        assert changes == []

    def test_a_counter_that_integer_keys_do_not_use(self, client):
        reserve("numbers_item", 32)
        counter = "/hilo/documents/numbers_item/A/"
        answer = client.patch(counter, {"max": 500}, format="json")
        assert answer.status_code == 409
        assert "raise_floor('numbers.Item', 500)" in answer.json()["detail"]

    def test_a_jump_that_the_admin_would_ask_about(self, client, settings, changes):
        settings.HILO = {"MAX_FLOOR_JUMP": 10}
        reserve("orders", 32)
        answer = client.patch(DOCUMENT, {"max": 43}, format="json")
        assert answer.status_code == 409
        assert "More than 10 numbers would be skipped" in answer.json()["detail"]
        assert HiLoDocument.objects.get(pk="orders/A").max == 32
        assert changes == []

    @pytest.mark.parametrize(
        "wrong", [-1, 2**63, 10**30, "5", "x", None, 1.5, True, [1], {}]
    )
    def test_bounds(self, client, wrong):
        reserve("orders", 32)
        answer = client.patch(DOCUMENT, {"max": wrong}, format="json")
        assert answer.status_code == 400
        assert f"from 0 to {MAX_NUMBER}" in answer.json()["max"][0]

    def test_unknown_counters_are_not_made(self, client):
        assert client.patch(DOCUMENT, {"max": 5}, format="json").status_code == 404
        assert not HiLoDocument.objects.exists()


class TestNextIds:
    def test_many_in_the_models_spelling(self, client):
        answer = post(client, "/hilo/collections/ORDERLINES/next-id/", {"count": 40})
        assert answer.json()["collection"] == "OrderLines"
        assert answer.json()["numbers"] == list(range(1, 41))
        assert answer.json()["ids"][-1] == "OrderLines/40-A"

    @pytest.mark.parametrize("collection", ["ordres", "7up", "records.Order", "a b"])
    def test_unknown_collections_make_no_counter(self, client, collection):
        for end, key in (("next-id/", "count"), ("ranges/", "size")):
            answer = post(client, f"/hilo/collections/{collection}/{end}", {key: 1})
            assert answer.status_code == 404
        assert not HiLoDocument.objects.exists()

    def test_above_2_to_the_53(self, client):
        floor.raise_floor("orders", 2**60)
        answer = json.loads(post(client, NEXT).content)
        assert answer["numbers"] == [2**60 + 1]
        assert parse(answer["ids"][0]).number == 2**60 + 1

    def test_a_counter_at_its_end(self, client):
        floor.raise_floor("orders", MAX_NUMBER)
        answer = post(client, NEXT)
        assert answer.status_code == 409
        assert "2^63-1" in answer.json()["detail"]

    def test_forms_work_too(self, client):
        for form in ("multipart", None):
            answer = client.post(
                NEXT,
                {"count": "2"} if form else "count=2",
                **(
                    {"format": form}
                    if form
                    else {"content_type": "application/x-www-form-urlencoded"}
                ),
            )
            assert len(answer.json()["ids"]) == 2

    def test_the_database_that_is_asked_for(self, client):
        answer = post(client, f"{NEXT}?database=other")
        assert answer.json()["ids"] == ["orders/1-B"]
        answer = post(client, f"{NEXT}?database=nowhere")
        assert answer.status_code == 400
        assert "default, other" in answer.json()["database"][0]


BOUNDED = [(NEXT, "count"), (RANGES, "size")]
WRONG = [0, -1, 10**30, 10_001, "1", "x", "", None, 1.5, 1.0, True, [1], {}]


class TestBounds:
    @pytest.mark.parametrize(("address", "name"), BOUNDED)
    @pytest.mark.parametrize("wrong", WRONG)
    def test_named_in_the_message(self, client, address, name, wrong):
        answer = post(client, address, {name: wrong})
        assert answer.status_code == 400
        assert "from 1 to 10000" in answer.json()[name][0]

    @pytest.mark.parametrize(("address", "name"), BOUNDED)
    def test_are_read_live(self, client, address, name, settings):
        settings.HILO = {**settings.HILO, "MAX_NUMBERS_PER_REQUEST": 7}
        assert post(client, address, {name: 7}).status_code == 201
        answer = post(client, address, {name: 8})
        assert answer.json() == {name: ["Enter an integer from 1 to 7, not 8."]}

    def test_a_size_is_needed(self, client):
        assert "from 1 to 10000" in post(client, RANGES).json()["size"][0]

    @pytest.mark.parametrize(
        "wrong", ["0", "-1", "1" * 31, "x", "1.0", "1_0", " 1", "٣", "true"]
    )
    def test_in_forms(self, client, wrong):
        answer = client.post(NEXT, {"count": wrong}, format="multipart")
        assert answer.status_code == 400
        assert "from 1 to 10000" in answer.json()["count"][0]


class TestRanges:
    def test_lend_and_return(self, client, boss, changes):
        answer = post(client, RANGES, {"size": 1000})
        assert answer.status_code == 201
        lent = answer.json()
        ticket = lent.pop("ticket")
        assert lent == {
            "collection": "orders",
            "separator": "/",
            "server_prefix": "",
            "low": 1,
            "high": 1000,
            "node_tag": "A",
            "width": 0,
        }
        back = {"high": 1000, "last": 40, "ticket": ticket}
        answer = post(client, RETURN, back)
        assert answer.status_code == 200
        assert answer.json() == {"returned": True, "max": 40}
        assert [
            (facts["change"], facts["old"], facts["new"], facts["user"])
            for facts in changes
        ] == [("reserved", 0, 1000, boss), ("returned", 1000, 40, boss)]

        answer = post(client, RETURN, back)
        assert answer.status_code == 409
        assert answer.json()["returned"] is False
        assert "stay a gap" in answer.json()["detail"]

    @pytest.mark.parametrize("collection", ["orders", "sortables"])
    @pytest.mark.parametrize("show", [True, False])
    def test_a_client_composes_the_ids_that_we_give(
        self, client, settings, show, collection
    ):
        settings.HILO = {"SHOW_NODE_TAG": show, "SEPARATOR": ":"}
        ServerPrefix.objects.create(node_tag="A", prefix="North/")
        address = f"/hilo/collections/{collection}"
        lent = post(client, f"{address}/ranges/", {"size": 2}).json()
        tag = lent["node_tag"]
        composed = "{collection}{separator}{server_prefix}".format(**lent)
        composed += str(lent["high"]).zfill(lent["width"])
        composed += f"-{tag}" if tag else ""
        back = {"high": 2, "last": 1, "ticket": lent["ticket"]}
        assert post(client, f"{address}/ranges/return/", back).status_code == 200
        assert post(client, f"{address}/next-id/").json()["ids"] == [composed]
        assert lent["width"] == (19 if collection == "sortables" else 0)

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("high", 0),
            ("high", 2**63),
            ("high", "5"),
            ("last", -1),
            ("last", None),
            ("ticket", ""),
            ("ticket", "ä"),
            ("ticket", "\x00"),
            ("ticket", "a" * 33),
            ("ticket", 5.5),
            ("ticket", None),
        ],
    )
    def test_returns_that_make_no_sense(self, client, name, wrong):
        reserve("orders", 32)
        back = {"high": 32, "last": 5, "ticket": "abc", name: wrong}
        answer = client.post(
            RETURN, json.dumps(back).encode(), content_type="application/json"
        )
        assert answer.status_code == 400
        assert list(answer.json()) == [name]

    def test_returns_for_counters_that_are_not_there(self, client):
        back = {"high": 32, "last": 5, "ticket": "abc"}
        assert post(client, RETURN, back).status_code == 409
        assert post(client, RETURN.replace("orders", "ordres"), back).status_code == 404
        assert not HiLoDocument.objects.exists()


class TestPrefixes:
    def test_set_and_list(self, client, boss, changes):
        address = "/hilo/prefixes/A/"
        for prefix in ("North/", "South/", ""):
            answer = client.put(address, {"prefix": prefix}, format="json")
            assert answer.status_code == 200
            assert answer.json() == {"node_tag": "A", "prefix": prefix}
        rows = client.get("/hilo/prefixes/").json()["results"]
        assert rows == [{"node_tag": "A", "prefix": ""}]
        assert [(facts["old"], facts["new"]) for facts in changes] == [
            (None, "North/"),
            ("North/", "South/"),
            ("South/", ""),
        ]
        assert {facts["user"] for facts in changes} == {boss}

    @pytest.mark.parametrize(
        "wrong", ["7", "a b", "$/", "|", "x" * 33, "a\x00/", None, [], 7]
    )
    def test_grammar(self, client, wrong):
        answer = client.put(
            "/hilo/prefixes/A/",
            json.dumps({"prefix": wrong}).encode(),
            content_type="application/json",
        )
        assert answer.status_code == 400
        assert list(answer.json()) == ["prefix"]
        assert not ServerPrefix.objects.exists()

    @pytest.mark.parametrize("tag", ["a", "-", "ABCDE", "Ä"])
    def test_nodes_that_cannot_be(self, client, tag):
        answer = client.put(f"/hilo/prefixes/{tag}/", {"prefix": "N/"}, format="json")
        assert answer.status_code == 404

    def test_on_another_database(self, client):
        client.put("/hilo/prefixes/B/?database=other", {"prefix": "N/"}, format="json")
        assert ServerPrefix.objects.using("other").get().prefix == "N/"
        assert client.get("/hilo/prefixes/").json()["count"] == 0
        assert client.get("/hilo/prefixes/?database=other").json()["count"] == 1


class TestGapless:
    def test_next(self, client, boss, changes):
        for number in (1, 2):
            answer = post(client, "/hilo/gapless/ORDERS/next/")
            assert answer.status_code == 201
            assert answer.json() == {"number": number, "id": f"orders/{number}"}
        facts = changes[-1]
        assert facts["sender"] is GaplessCounter
        assert (facts["user"], facts["old"], facts["new"]) == (boss, 1, 2)

    def test_what_else_knows_a_collection(self, client):
        GaplessCounter.objects.create(collection="bills", last=7)
        reserve("tickets", 1)
        assert post(client, "/hilo/gapless/bills/next/").json()["number"] == 8
        assert post(client, "/hilo/gapless/tickets/next/").json()["number"] == 1
        assert post(client, "/hilo/gapless/ordres/next/").status_code == 404
        assert post(client, "/hilo/gapless/7up/next/").status_code == 404
        assert not GaplessCounter.objects.filter(pk="ordres").exists()

    def test_at_its_end(self, client):
        GaplessCounter.objects.create(collection="orders", last=MAX_NUMBER)
        assert post(client, "/hilo/gapless/orders/next/").status_code == 409


class Unread(io.BytesIO):
    """A body that complains when it is read."""

    def read(self, *args):
        raise AssertionError("the body was read")

    readline = readinto = read


class TestBodies:
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/xml",
        ],
    )
    @pytest.mark.parametrize("length", [str(10_000_000), "65537", "9" * 5000])
    def test_too_long_is_refused_unread(self, boss, content_type, length):
        request = RequestFactory().generic("POST", NEXT, content_type=content_type)
        request.META["CONTENT_LENGTH"] = length
        request._stream = Unread()
        request._force_auth_user = boss
        answer = views.NextIds.as_view()(request, collection="orders").render()
        assert answer.status_code == 400
        assert b"65536 bytes are allowed" in answer.content
        assert answer["Cache-Control"] == "no-store"

    def test_the_longest_that_is_read(self, client):
        def body(length: int) -> bytes:
            start, end = b'{"count": 1', b"}"
            return start + b" " * (length - len(start) - len(end)) + end

        for length, status in ((bodies.MAX_BODY, 201), (bodies.MAX_BODY + 1, 400)):
            answer = client.post(NEXT, body(length), content_type="application/json")
            assert answer.status_code == status

    def test_chunks_without_a_length(self, boss):
        request = RequestFactory().post(NEXT, content_type="application/json")
        request.META["CONTENT_LENGTH"] = ""
        request.META["HTTP_TRANSFER_ENCODING"] = "chunked"
        request._stream = Unread()
        request._force_auth_user = boss
        answer = views.NextIds.as_view()(request, collection="orders").render()
        assert answer.status_code == 400
        assert b"Content-Length" in answer.content

    @pytest.mark.parametrize(
        "body",
        [
            b"{",
            b"\xff\xfe",
            b"null",
            b"[]",
            b"[" * 30_000,
            b'{"count": ' * 9_000,
            b'"text"',
            b'{"count": NaN}',
            b'{"count": Infinity}',
            b'{"count": ' + b"9" * 5_000 + b"}",
            b'{"count": "\\ud800"}',
            b'{"count": "\\u0000"}',
            b'{"count": 1e400}',
            b"\x00",
        ],
    )
    @pytest.mark.parametrize("address", [NEXT, RANGES, RETURN])
    def test_nonsense(self, client, address, body):
        answer = client.post(address, body, content_type="application/json")
        assert answer.status_code == 400
        assert answer.json()

    @pytest.mark.parametrize(
        ("address", "body"),
        [
            (NEXT, {"cuont": 5}),
            (NEXT, {"count": 5, "Count": 5}),
            (NEXT, {"count": 1, "": 1}),
            (NEXT, {"count": 1, "x" * 500: 1}),
            (RANGES, {"size": 5, "count": 5}),
            (RETURN, {"high": 9, "last": 1, "ticket": "a", "user": 1}),
            ("/hilo/gapless/orders/next/", {"count": 5}),
        ],
    )
    @pytest.mark.parametrize("format", ["json", "multipart"])
    def test_unknown_keys(self, client, address, body, format):
        answer = client.post(address, body, format=format)
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("Unknown keys: ")
        assert len(answer.content) < 500
        assert not HiLoDocument.objects.exists()
        assert not GaplessCounter.objects.exists()

    def test_unknown_keys_of_other_methods(self, client):
        reserve("orders", 32)
        answer = client.patch(DOCUMENT, {"max": 50, "floor": 50}, format="json")
        assert answer.json()["detail"].startswith("Unknown keys: 'floor'. Use only")
        assert HiLoDocument.objects.get().max == 32
        answer = client.put("/hilo/prefixes/A/", {"prefix": "N/", "node_tag": "B"})
        assert answer.status_code == 400

    @pytest.mark.parametrize("body", [b'{"count": 5}', b'{"count": "a=b&c"}'])
    def test_json_that_is_sent_as_a_form(self, client, body):
        kind = "application/x-www-form-urlencoded"
        answer = client.post(NEXT, body, content_type=kind)
        assert answer.status_code == 400
        assert "the Content-Type application/json" in answer.json()["detail"]

    @pytest.mark.parametrize("accept", ["application/json", "text/html", "*/*"])
    @pytest.mark.parametrize(
        "body",
        [
            b'{"count": "\\ud800"}',
            b'{"\\ud800": 1}',
            b'{"count": [["\\udfff"]]}',
            b'"\\ud800"',
        ],
    )
    def test_lone_surrogates(self, client, accept, body):
        answer = client.post(
            NEXT, body, content_type="application/json", headers={"Accept": accept}
        )
        assert answer.status_code == 400
        assert "surrogate" in answer.content.decode()

    def test_a_form_of_too_many_fields(self, client):
        answer = client.post(
            NEXT, b"a&" * 2_000, content_type="application/x-www-form-urlencoded"
        )
        assert answer.status_code == 400
        assert answer["Cache-Control"] == "no-store"

    def test_other_formats(self, client):
        answer = client.post(NEXT, b"<count/>", content_type="text/xml")
        assert answer.status_code == 415
        assert answer["Cache-Control"] == "no-store"


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "status", "retry"),
        [
            (ReservationTimeout("locked"), 503, "1"),
            (ConcurrencyError("deadlocks"), 503, "1"),
            (OperationalError("host 10.0.0.1 is away"), 503, "1"),
            (HiLoError("no tables"), 503, None),
        ],
    )
    def test_of_the_database(self, client, monkeypatch, error, status, retry):
        monkeypatch.setattr(views, "next_ids", Mock(side_effect=error))
        answer = post(client, NEXT)
        assert answer.status_code == status
        assert answer.get("Retry-After") == retry
        # Texts of the server are for its log: they name hosts.
        assert str(error) not in answer.json()["detail"]
        assert answer["Cache-Control"] == "no-store"

    def test_other_methods(self, client):
        answer = client.get(NEXT)
        assert answer.status_code == 405
        assert answer["Cache-Control"] == "no-store"

    def test_options(self, client):
        for address in (NEXT, RANGES, RETURN, DOCUMENT, "/hilo/prefixes/A/"):
            answer = client.options(address)
            assert answer.status_code == 200
            assert answer["Cache-Control"] == "no-store"

    def test_no_etag_even_where_a_middleware_adds_them(self, client, settings):
        settings.MIDDLEWARE = [
            "django.middleware.http.ConditionalGetMiddleware",
            *settings.MIDDLEWARE,
        ]
        reserve("orders", 1)
        answer = client.get(DOCUMENT)
        assert answer["Cache-Control"] == "no-store"
        assert "ETag" not in answer


class TestThrottle:
    @pytest.fixture(autouse=True)
    def empty_cache(self):
        cache.clear()
        yield
        cache.clear()

    def test_no_rate_no_throttle(self, client):
        assert {post(client, NEXT).status_code for _ in range(20)} == {201}

    def test_its_own_rate_for_all_endpoints(self, client, settings):
        settings.REST_FRAMEWORK = {
            **settings.REST_FRAMEWORK,
            "DEFAULT_THROTTLE_RATES": {"hilo": "2/day"},
        }
        assert post(client, NEXT).status_code == 201
        assert post(client, RANGES, {"size": 1}).status_code == 201
        answer = post(client, NEXT)
        assert answer.status_code == 429
        assert int(answer["Retry-After"]) > 0
        assert answer["Cache-Control"] == "no-store"

        other = APIClient()
        other.force_authenticate(User.objects.create_superuser("other"))
        assert post(other, NEXT).status_code == 201


class TestSessions:
    @pytest.fixture
    def browser(self, boss, settings):
        settings.MIDDLEWARE = [
            *settings.MIDDLEWARE,
            "django.middleware.csrf.CsrfViewMiddleware",
        ]
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(boss)
        return browser

    @pytest.mark.parametrize(
        "address",
        ["/hilo/documents/", DOCUMENT, NEXT, RANGES, RETURN, "/hilo/prefixes/",
         "/hilo/prefixes/A/", "/hilo/gapless/orders/next/"],
    )  # fmt: skip
    def test_pages_of_the_browsable_api(self, browser, address):
        reserve("orders", 1)
        answer = browser.get(address, headers={"Accept": "text/html"})
        assert answer.status_code in (200, 405)
        assert answer["Content-Type"].startswith("text/html")
        assert answer["Cache-Control"] == "no-store"

    def test_pages_have_forms(self, browser):
        reserve("orders", 5)
        page = browser.get(NEXT, headers={"Accept": "text/html"}).content.decode()
        assert 'name="count"' in page
        page = browser.get(DOCUMENT, headers={"Accept": "text/html"}).content.decode()
        assert "&quot;max&quot;: 5" in page

    def test_pages_of_errors(self, browser):
        client = APIClient()  # without checks of CSRF
        client.cookies = browser.cookies
        for address, body, kind in [
            (RANGES, b"", "application/json"),
            (RANGES, b"{", "application/json"),
            (RANGES, b"<a/>", "text/xml"),
            (RANGES, b" " * 70_000, "application/json"),
        ]:
            answer = client.post(
                address, body, content_type=kind, headers={"Accept": "text/html"}
            )
            assert answer.status_code in (400, 415)
            assert answer["Content-Type"].startswith("text/html")

    def test_csrf_as_drf_has_it(self, browser):
        assert browser.post(NEXT, {"count": 1}).status_code == 403
        page = browser.get(NEXT, headers={"Accept": "text/html"})
        token = page.cookies["csrftoken"].value
        sent = {"count": 1, "csrfmiddlewaretoken": token}
        assert browser.post(NEXT, sent).status_code == 201

    def test_basic_authentication(self, boss):
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION="Basic Ym9zczpzZWNyZXQ=")
        assert post(client, NEXT).status_code == 201


class TestSchema:
    def test_without_a_warning(self, tmp_path):
        file = tmp_path / "schema.yml"
        call_command(
            "spectacular", file=str(file), validate=True, fail_on_warn=True,
            skip_checks=True,
        )  # fmt: skip
        text = file.read_text()
        assert "NorthServer/" in text
        for promise in ("carry neither", "There may be gaps", "JavaScript rounds"):
            assert promise in " ".join(text.split())


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestTransactions:
    def test_numbers_come_from_memory(self, client):
        post(client, NEXT)
        with CaptureQueriesContext(connection) as queries:
            answers = [post(client, NEXT).json()["ids"][0] for _ in range(31)]
        assert answers[-1] == "orders/32-A"
        assert queries.captured_queries == []

    def test_atomic_requests(self, client, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        given = [post(client, NEXT).json()["numbers"][0] for _ in range(40)]
        lent = post(client, RANGES, {"size": 5}).json()
        given += range(lent["low"], lent["high"] + 1)
        back = {"high": lent["high"], "last": lent["high"], "ticket": lent["ticket"]}
        assert post(client, RETURN, back).status_code == 200
        given.append(post(client, NEXT).json()["numbers"][0])
        assert len(set(given)) == len(given)
        assert post(client, "/hilo/gapless/orders/next/").json()["number"] == 1
        maximum = HiLoDocument.objects.get(pk="orders/A").max
        answer = client.patch(DOCUMENT, {"max": maximum + 9}, format="json")
        assert answer.status_code == 200
        assert client.patch(DOCUMENT, {"max": 1}, format="json").status_code == 409
        assert HiLoDocument.objects.get(pk="orders/A").max == maximum + 9
        assert max(given) <= maximum

    def test_a_request_that_fails_gives_its_gapless_number_back(
        self, client, monkeypatch
    ):
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        error = HiLoError("after the number was taken")
        with monkeypatch.context() as patched:
            patched.setattr(views, "IdFormat", Mock(**{"of.side_effect": error}))
            assert post(client, "/hilo/gapless/orders/next/").status_code == 503
        assert post(client, "/hilo/gapless/orders/next/").json()["number"] == 1

    def test_gapless_ids_of_saves_and_of_requests_have_one_counter(self, client):
        assert Letter.objects.create().pk == "letters/1"
        answer = post(client, "/hilo/gapless/LETTERS/next/").json()
        assert answer == {"number": 2, "id": "letters/2"}
        assert Letter.objects.create().pk == "letters/3"

    def test_ids_of_saves_and_of_requests_are_different(self, client):
        given = [Order.objects.create().pk for _ in range(3)]
        given += post(client, NEXT, {"count": 50}).json()["ids"]
        given += [Order.objects.create().pk for _ in range(3)]
        assert len(set(given)) == len(given)


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestFacesOfOneCounter:
    @pytest.mark.urls("tests.rest_framework.test_endpoints")
    def test_a_site_may_have_names_in_its_prefix(self, client):
        answer = client.post("/acme/hilo/collections/orders/next-id/")
        assert answer.json()["ids"] == ["orders/1-A"]
        assert client.get("/acme/hilo/documents/orders/A/").status_code == 200
        assert client.get("/acme/raven/topology?name=x").status_code == 401

    def test_a_gapless_id_never_looks_like_another(self, client, settings):
        settings.HILO = {"SHOW_NODE_TAG": False}
        assert client.post("/hilo/gapless/orders/next/").status_code == 409

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite says it in another way")
    @pytest.mark.parametrize("address", ["/hilo/documents/", "/hilo/prefixes/"])
    def test_missing_tables_are_no_500(self, client, monkeypatch, address):
        for model in (HiLoDocument, ServerPrefix):
            hide_table(model, monkeypatch)
        answer = client.get(address)
        assert (answer.status_code, answer["Cache-Control"]) == (503, "no-store")


urlpatterns = [
    path("admin/", admin.site.urls),
    path("<slug:tenant>/hilo/", include("django_hilo.rest_framework.urls")),
    path("<slug:tenant>/raven/", include("django_hilo.ravendb.urls")),
]
