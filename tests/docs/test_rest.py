"""docs/how-to/rest.md: the recipes for an API answer 4xx to whatever is sent."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.pages import Follower, fences, page
from tests.support.projects import project_in

# Sends requests, a line of JSON each, and prints the answers; cursors are those of DRF.
CLIENT = """
    import base64, json, sys
    from urllib.parse import urlencode
    from django.contrib.auth.models import User
    from rest_framework.test import APIClient
    from shop.imports import ImportOrder
    from shop.models import Order

    user, _ = User.objects.get_or_create(username="root", is_superuser=True)
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(user)
    for method, path, body in json.loads(sys.argv[1]):
        if method == "HIDE":
            ImportOrder.get_queryset = lambda self: Order.objects.filter(note=body)
            continue
        if method == "PAGE":
            cursor = base64.b64encode(urlencode(body).encode()).decode()
            method, path, body = "GET", path + "?" + urlencode({"cursor": cursor}), None
        answer = client.generic(
            method, "/api/" + path, json.dumps(body), content_type="application/json"
        )
        is_json = answer["Content-Type"] == "application/json"
        print(json.dumps([answer.status_code, answer.json() if is_json else None]))
"""


class Answer(NamedTuple):
    status: int
    body: Any


class Api:
    """A project with the recipes of the page, and a client of it."""

    def __init__(self, follower: Follower) -> None:
        self._project = follower

    def ask(self, *requests: tuple[str, str, Any]) -> list[Answer]:
        """Return the answers to requests that one process serves."""
        printed = self._project.run(CLIENT, json.dumps(requests))
        return [Answer(*json.loads(line)) for line in printed.splitlines()]

    def put(self, path: str, *bodies: Any) -> list[Answer]:
        return self.ask(*[("PUT", path, body) for body in bodies])

    def ids(self) -> list[str]:
        """Return the ids of all orders and lines."""
        code = """
            from shop.models import Order, OrderLine
            print(*Order.objects.values_list("pk", flat=True))
            print(*OrderLine.objects.values_list("pk", flat=True))
        """
        return sorted(self._project.run(code).split())


@pytest.fixture
def api(tmp_path, transactional_db) -> Iterator[Api]:
    with project_in(tmp_path) as plain:
        follower = Follower(tmp_path, plain.database)
        for fence in fences(page("how-to/rest.md")):
            if fence.language == "python" and fence.file != "hilo_client.py":
                follower.add(fence)
        follower.manage("makemigrations", "shop")
        follower.manage("migrate")
        yield Api(follower)


class TestIdsThatAClientGenerated:
    def test_the_second_request_updates(self, api):
        answers = api.put("imports/orders/35-A/", {"note": "one"}, {"note": "two"})
        assert answers == [
            (201, {"id": "orders/35-A", "note": "one"}),
            (200, {"id": "orders/35-A", "note": "two"}),
        ]
        assert api.ids() == ["orders/35-A"]

    def test_a_far_id(self, api):
        near, *refused = api.ask(
            ("PUT", "imports/orders/35-A/", {}),
            *[
                ("PUT", f"imports/orders/{far}-A/", {})
                for far in (10**12, 10**18, 2**63 - 1, 2**63, 10**40)
            ],
        )
        assert near.status == 201
        assert {answer.status for answer in refused} <= {400, 404}, refused
        assert api.ids() == ["orders/35-A"]

    def test_other_ways_to_write_an_id(self, api):
        others = [
            "orders/0035-A",
            "orders/36",
            "orders/37-ZZZZ",
            "orders/0-A",
            "orders/35-a",
            "Orders/35-A",
            "orders:35-A",
            "orders/35-A$orders/1-A",
            "orders/North/35-A",
            "OrderLines/35-A",
            "orders/35-A%0A",
            "orders/%D9%A3%D9%A5-A",
            "orders/35-%C3%81",
            "orders/35-A%00",
            "orders%2F35-A%20",
        ]
        first, *answers = api.ask(
            ("PUT", "imports/orders/35-A/", {}),
            *[("PUT", f"imports/{other}/", {}) for other in others],
        )
        assert first.status == 201
        assert {answer.status for answer in answers} <= {400, 404}, answers
        assert api.ids() == ["orders/35-A"]

    def test_a_wrong_body(self, api):
        notes = [None, "n" * 51, "\0", "\ud800", {}]
        bodies = [None, [], "text", *[{"note": note} for note in notes]]
        answers = api.put("imports/orders/35-A/", *bodies)
        assert [answer.status for answer in answers] == [400] * len(bodies)
        assert api.ids() == []

    def test_an_object_that_the_user_may_not_see(self, api):
        _, refused = api.ask(
            ("PUT", "imports/orders/35-A/", {"note": "theirs"}),
            ("HIDE", "", "ours"),
            ("PUT", "imports/orders/35-A/", {"note": "ours"}),
        )
        assert refused == (400, {"id": ["orders/35-A is taken."]})


class TestObjectsWithTheirLines:
    path = "whole-orders/orders/1-A/"

    def start(self, api, *requests):
        """Make an order of lines 1 and 2, one of line 3, and ask for more."""
        lines = [{"quantity": 1}, {"quantity": 2}]
        _, _, first, _, *answers = api.ask(
            ("POST", "orders/", {}),
            ("POST", "orders/", {}),
            ("PUT", self.path, {"lines": lines}),
            ("PUT", "whole-orders/orders/2-A/", {"lines": lines[:1]}),
            *requests,
        )
        assert [line["id"] for line in first.body["lines"]] == [
            "OrderLines/1-A",
            "OrderLines/2-A",
        ]
        return answers

    def test_lines_are_kept_made_and_deleted(self, api):
        lines = [{"quantity": 7}, {"id": "OrderLines/2-A", "quantity": 8}]
        [answer] = self.start(api, ("PUT", self.path, {"note": "new", "lines": lines}))
        assert answer.status == 200
        assert {line["id"]: line["quantity"] for line in answer.body["lines"]} == {
            "OrderLines/2-A": 8,
            "OrderLines/4-A": 7,
        }
        assert "OrderLines/1-A" not in api.ids()

    def test_a_patch_without_lines(self, api):
        [answer] = self.start(api, ("PATCH", self.path, {"note": "new"}))
        assert (answer.status, len(answer.body["lines"])) == (200, 2)

    def test_wrong_lines(self, api):
        wrong = [
            None,
            {},
            "text",
            [1],
            [None],
            [{}],
            [{"quantity": 1}] * 1001,
            [{"quantity": 10**30}],
            [{"id": "OrderLines/1-A"}],
            [{"id": None, "quantity": 1}],
            [{"id": "", "quantity": 1}],
            [{"id": 1, "quantity": 1}],
            [{"id": "OrderLines/1-A\0", "quantity": 1}],
            [{"id": "OrderLines/1-A", "quantity": 5}] * 2,
            [{"id": "orderlines/1-a", "quantity": 5}],
            [{"id": "OrderLines/3-A", "quantity": 5}],
            [{"id": "OrderLines/99-A", "quantity": 5}],
            [{"id": "9" * 10_000, "quantity": 5}],
        ]
        *answers, after = self.start(
            api,
            *[("PUT", self.path, {"note": "no", "lines": lines}) for lines in wrong],
            ("GET", self.path, None),
        )
        assert [answer.status for answer in answers] == [400] * len(wrong)
        assert (after.body["note"], len(after.body["lines"])) == ("", 2)


class TestTheNewestFirst:
    def test_pages(self, api):
        makes = [("POST", "orders/", {})] * 101
        *_, newest, page = api.ask(
            *makes,
            ("GET", "newest-orders/", None),
            ("PAGE", "newest-orders/", {"o": 100}),
        )
        ids = [
            order["id"] for order in [*newest.body["results"], *page.body["results"]]
        ]
        assert ids == [f"orders/{number}-A" for number in range(101, 0, -1)]

    def test_made_up_cursors(self, api):
        places = [
            "text",
            "\0",
            "2026-02-30",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
        ]
        offsets: list[Any] = [-1, 10**30, "text"]
        cursors = [*[{"p": place} for place in places], *[{"o": o} for o in offsets]]
        _, *answers = api.ask(
            ("POST", "orders/", {}),
            *[("PAGE", "newest-orders/", cursor) for cursor in cursors],
        )
        assert {answer.status for answer in answers} <= {200, 404}, answers
