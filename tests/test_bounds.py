"""Nobody gets more than the bounds allow: of numbers, counters, memory or time."""

from __future__ import annotations

import re
import time
from hashlib import sha256

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from django_hilo import pool
from django_hilo.converters import HiLoConverter, converter_for
from django_hilo.identifiers import ID_PATTERN, DocumentId, check_server_prefix, parse
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.ravendb import databases
from tests.records.models import Invoice, Order

# A server refuses an address of 8 kB or sends it on; this is eight times as long, and
# what costs the square of it costs minutes.
LONG = 64_000
SECONDS = 5.0

PATTERNS = {
    "ID_PATTERN": ID_PATTERN,
    "hilo": HiLoConverter.regex,
    "order": converter_for(Order).regex,
    "invoice": converter_for(Invoice).regex,
}
ROUTES = {
    "one": "^orders/{0}/$",
    "suffix": r"^orders/{0}\.(?P<format>[a-z0-9]+)/?$",
    "two": "^orders/{0}/lines/{0}/$",
    "side by side": "^{0}/{0}/{0}$",
}
STARTS = ["orders/", "orders/orders/1", "orders/orders/1/lines/", "orders/1$"]
UNITS = [
    *("a", "1", "0", "/", "$", "-", "A", "-A", "a/", "1/", "x1/", "1-A/", "$a", "$1"),
    *("a1/lines/a/", "b:1/lines/b:1", "a1/lines/b/", "a/1", "a/1$", "$a/1", "$a/1/"),
    *("$a:1", "$a:1-A", "1a", "/lines/", "orders/1/lines/", "orders/1$orders/1/"),
]
ENDS = ["", "/", "!", "\0", "/x y/"]


def seconds_of(action, *arguments):
    """How long this process computes; others may have the machine meanwhile."""
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start


class TestTime:
    @pytest.mark.parametrize("route", ROUTES)
    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_of_an_address_that_is_made_to_be_slow(self, pattern, route):
        regex = re.compile(ROUTES[route].format(PATTERNS[pattern]))
        for start in STARTS:
            for unit in UNITS:
                for end in ENDS:
                    text = start + unit * (LONG // len(unit)) + end
                    assert seconds_of(regex.match, text) < SECONDS, (start, unit, end)

    @pytest.mark.parametrize("start", ["orders/", "orders/1$", "", "o", "orders/1-"])
    @pytest.mark.parametrize("unit", [*UNITS, "1x", "x1", "\u202e", "😀", " "])
    def test_of_reading_an_id(self, start, unit):
        text = start + unit * (LONG // len(unit))
        for action in (_parsed, HiLoConverter().to_python, check_server_prefix):
            assert seconds_of(_refused, action, text) < SECONDS, action


def _parsed(text: str) -> str:
    assert str(parse(text)) == text
    return text


def _refused(action, text):
    try:
        action(text)
    except ValueError as error:
        assert len(str(error)) < 500


class TestNumbersThatPythonDoesNotPrint:
    def test_are_refused_with_the_bound(self):
        with pytest.raises(ValueError, match=r"16610 bits must be from 1 to 9223372"):
            str(DocumentId("orders", "", 10**5000))


@pytest.fixture
def api(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"shop": "default"},
        "RAVENDB_TOKENS": [sha256(b"tok").hexdigest()],
    }
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    return client


NEXT = "/raven/tok/databases/shop/hilo/next"
BACK = "/raven/tok/databases/shop/hilo/return"
# 1e400 is more than a float holds; the rest is no number to those who read it exactly.
COUNTS = ["1e400", "-1e400", "1e3", "NaN", "true", str(10**30), "9" * 5000, "1.0"]
COUNTS += ['"\uff11\uff12"', '"12"', "[1]", "{}", "null", "-0.5", "10001"]


@pytest.mark.django_db
class TestCounts:
    @pytest.mark.parametrize("count", COUNTS)
    def test_over_rest(self, api, count):
        for path, name in (("next-id", "count"), ("ranges", "size")):
            url = f"/hilo/collections/orders/{path}/"
            body = f'{{"{name}": {count}}}'
            answer = api.generic("POST", url, body.encode(), "application/json")
            assert answer.status_code == 400
            assert len(answer.content) < 500
        assert not HiLoDocument.objects.exists()

    @pytest.mark.parametrize("size", ["1e400", "true", "\uff11\uff12", str(10**30)])
    def test_over_ravendbs_protocol(self, api, size):
        answer = api.get(NEXT, {"tag": "orders", "lastBatchSize": size})
        assert answer.status_code == 400
        assert not HiLoDocument.objects.exists()

    def test_the_largest_that_a_client_may_claim(self, api, settings):
        settings.HILO = {**settings.HILO, "MAX_CAPACITY": 1000}
        asked = {"tag": "orders", "lastBatchSize": 2**63 - 1, "lastMax": 2**63 - 1}
        answer = api.get(NEXT, asked).json()
        assert answer["High"] - answer["Low"] == 999
        assert answer["Low"] == 1_000_000_001, "MAX_FLOOR_JUMP"


@pytest.mark.django_db
class TestCollections:
    def test_unknown_ones_leave_nothing(self, api):
        held = len(pool.current().counters())
        for number in range(200):
            for path, body in [
                ("collections/c{}/next-id/", {}),
                ("collections/c{}/ranges/", {"size": 1}),
                (
                    "collections/c{}/ranges/return/",
                    {"high": 9, "last": 8, "ticket": "a"},
                ),
                ("gapless/c{}/next/", {}),
            ]:
                url = "/hilo/" + path.format(number)
                assert api.post(url, body, format="json").status_code == 404
            back = f"{BACK}?tag=c{number}&end=9&last=8"
            assert api.put(back).status_code == 204
        assert not HiLoDocument.objects.exists()
        assert not GaplessCounter.objects.exists()
        assert len(pool.current().counters()) == held

    def test_this_process_remembers_none_that_it_lends_from(self, api):
        """Each tag of RavenDB's clients makes a row, as in RavenDB."""
        held = len(pool.current().counters())
        for number in range(50):
            assert api.get(NEXT, {"tag": f"c{number}"}).status_code == 201
            url = f"/hilo/collections/c{number}/ranges/"
            assert api.post(url, {"size": 1}, format="json").status_code == 201
        assert HiLoDocument.objects.count() == 50
        assert len(pool.current().counters()) == held

    def test_new_tags_end_somewhere(self, api, monkeypatch):
        monkeypatch.setattr(databases, "MOST_COUNTERS", 3)
        for number in range(3):
            assert api.get(NEXT, {"tag": f"c{number}"}).status_code == 201
        answer = api.get(NEXT, {"tag": "c3"})
        assert answer.status_code == 400
        assert "'c3' has no counter" in answer.json()["Message"]
        assert "add it in the admin" in answer.json()["Message"]
        for known in ("C0", "orders", "orderlines"):
            assert api.get(NEXT, {"tag": known}).status_code == 201
