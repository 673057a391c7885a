"""Ids in URLs: the path converter hilo."""

import re
from urllib.parse import unquote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admindocs.utils import (
    remove_non_capturing_groups,
    replace_named_groups,
)
from django.http import HttpResponse
from django.test import AsyncClient, Client
from django.urls import NoReverseMatch, Resolver404, include, path, resolve, reverse
from django.urls.converters import REGISTERED_CONVERTERS, get_converters
from hypothesis import example, given
from hypothesis import strategies as st
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.test import APIClient

from django_hilo import converters
from django_hilo.converters import HiLoConverter
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import SEPARATORS, DocumentId, parse
from tests.apps.records.models import Order
from tests.test_identifiers import document_ids, node_tags


def show(request, **ids):
    return HttpResponse("\n".join(ids.values()).encode())


class OrderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "name"]


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("id__number")
    serializer_class = OrderSerializer
    lookup_value_converter = "hilo"

    @action(detail=True)
    def lines(self, request, pk, format=None):
        return Response([line.pk for line in self.get_object().lines.all()])


def _drf_urls():
    router = DefaultRouter(use_regex_path=False)
    router.register("orders", OrderViewSet)
    return router.urls


def routes():
    return [
        path("one/<hilo:pk>/", show, name="one"),
        path("one/<hilo:pk>/lines/", show, name="lines"),
        path("one/<hilo:pk>/lines/<hilo:line>/", show, name="line"),
        path("one/<hilo:pk>/pages/<int:page>/", show, name="page"),
        path("bare/<hilo:pk>", show, name="bare"),
        path("<hilo:pk>/lines/", show, name="first"),
        path(
            "within/<hilo:pk>/",
            include([path("", show, name="in"), path("v2/", show, name="in-second")]),
        ),
    ]


urlpatterns = [
    path("hilo/", include((routes(), "hilo"))),
    path("api/", include(_drf_urls())),
]
pytestmark = pytest.mark.urls(__name__)

NUMBER = re.compile(r"0*[1-9][0-9]*(-[A-Z]{1,4})?")
PLAIN = ("one", "lines", "bare", "first")


def fits(text):
    """Whether an id is inside the limits that the documentation tells."""
    if text.count("$") > 8 or not {".", ".."}.isdisjoint(text.split("/")):
        return False
    return all(part_fits(part) for part in text.split("$")) and whole(text)


def part_fits(part):
    if "/" not in part:
        return True
    try:
        prefix = parse(part).server_prefix
    except InvalidDocumentId:
        return False
    pieces = part.split("/")[:-1]
    pieces[0] = pieces[0][len(parse(part).collection) + 1 :]
    return prefix.count("/") <= 8 and not any(map(NUMBER.fullmatch, pieces))


def whole(text):
    return not re.search("[\ud800-\udfff]", text)


def found(url):
    match = resolve(unquote(url))
    return match.view_name, match.kwargs


def taken(text):
    """Whether the converter takes an id, in both directions."""
    try:
        assert HiLoConverter().to_url(text) == text
    except ValueError:
        return False
    assert re.fullmatch(HiLoConverter.regex, text)
    assert HiLoConverter().to_python(text) == text
    return True


class TestAnyId:
    @given(document_ids.map(str).filter(fits))
    @example("orders/33-A")
    @example("orders/NorthServer/1")
    @example("orders/node2/1-A")
    @example("orders/0000000000000000042-A")
    @example("invoices/7-A$orders/33-A")
    @example("x/1$$")
    @example("x/1$a$orders/N/2-A$b")
    @example("x/1$ ä\n?#%2F;&= ")
    @example("x%1-A")
    @example("x/ä#?%2F/1")
    @example("orders(33-A")
    @example("orders\\33-A")
    @example("orders//1")
    @example("orders/99999999999999999999/1")
    @example("o" * 100 + "/" + "x" * 32 + "9223372036854775807-ABCD")
    @example("orders/" + "x" * 31 + "/0000000000000000001-ABCD")
    @example("x/1$" + "o" * 100 + "/" + "x" * 32 + "9223372036854775807-ABCD")
    @example("x/1$orders/" + "x" * 31 + "/0000000000000000001-ABCD")
    def test_urls_lead_back(self, text):
        assert taken(text)
        for name in PLAIN:
            url = reverse(f"hilo:{name}", args=[text])
            assert found(url) == (f"hilo:{name}", {"pk": text})

    @given(document_ids.map(str))
    @example("orders/4/33-A")
    @example("orders/33-A/1")
    @example("orders/N/7-B/33-A")
    @example("orders/../1")
    @example("orders/./1")
    @example("x/1$a/../1")
    @example("invoices/7-A$2026/10")
    @example("x/1$a/b")
    @example("x/1$a/0")
    @example("x/1\ud800/1")
    @example("x/1$\udfff")
    @example("x/1" + "$" * 9)
    @example("x/" + "a/" * 9 + "1")
    def test_what_the_limits_exclude_has_no_url(self, text):
        assert taken(text) == fits(text)
        if not fits(text):
            with pytest.raises(NoReverseMatch):
                reverse("hilo:one", args=[text])

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "orders",
            "orders/",
            "33",
            33,
            None,
            "orders/0",
            "orders/1$",
            "|",
            "a/1\n",
        ],
    )
    def test_what_is_no_id_has_no_url(self, value):
        with pytest.raises(NoReverseMatch):
            reverse("hilo:one", args=[value])

    @pytest.mark.parametrize(
        "text",
        [
            "orders/9223372036854775808",
            "orders/" + "9" * 37,
            "orders/0",
            "orders/33-a",
            "orders/1$",
            "orders/1$a/99999999999999999999",
            "orders/" + "x" * 32 + "y1",
            "o" * 101 + "/1",
            "orders/4/33-A",
            "orders/../1",
            "orders/1\0",
        ],
    )
    def test_what_is_no_id_is_not_found(self, text):
        with pytest.raises(Resolver404):
            resolve(f"/hilo/one/{text}/")

    def test_parts_of_an_id_stand_for_it(self):
        url = reverse("hilo:one", args=[DocumentId("orders", "", 33, "A")])

        assert url == "/hilo/one/orders/33-A/"

    def test_every_separator_and_no_other_sign(self):
        signs = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]

        assert {s for s in signs if taken(f"orders{s}33-A")} == SEPARATORS


@st.composite
def plain_ids(draw, *collections):
    """Ids with one reading, whatever follows: of some collections, each the anchor of
    the one before it, with server prefixes that end in a slash, or none."""
    text = None
    for collection in reversed(collections):
        pieces = draw(st.lists(prefix_pieces, max_size=2))
        prefix = "".join(f"{piece}/" for piece in pieces)
        number = draw(st.integers(1, 2**63 - 1))
        text = str(DocumentId(collection, prefix, number, draw(node_tags), text))
    return text


prefix_pieces = st.one_of(
    st.sampled_from(["N", "N2", "a.b", "x-A", "4,1", "2026-"]),
    st.text(
        st.characters(categories=["L", "P", "S"], exclude_characters="$|/."), max_size=8
    ),
)
any_plain_ids = st.lists(
    st.sampled_from(["orders", "OrderLines", "x_y-z"]), min_size=1, max_size=3
).flatmap(lambda collections: plain_ids(*collections))


class TestWhatFollows:
    @given(any_plain_ids, any_plain_ids)
    @example("orders/33-A", "OrderLines/7-A")
    @example("orders/N/33-A", "OrderLines/N/7-A")
    @example("invoices/7-A$orders/33-A", "invoices/7-A$orders/33-A")
    @example("orders/33", "OrderLines/7")
    def test_of_an_id(self, pk, line):
        for name, more in [
            ("line", {"line": line}),
            ("page", {"page": 5}),
            ("lines", {}),
            ("in", {}),
            ("in-second", {}),
        ]:
            url = reverse(f"hilo:{name}", kwargs={"pk": pk, **more})
            assert found(url) == (f"hilo:{name}", {"pk": pk, **more})

    @pytest.mark.parametrize("pk", ["users/4,1", "x/1$EU"])
    def test_the_longer_route_comes_first_where_ids_end_in_another_way(self, pk):
        """The documentation says so: nothing else could tell."""
        longer = path("<hilo:pk>/lines/<hilo:line>/", show, name="line")
        shorter = path("<hilo:pk>/", show, name="one")
        line = {"pk": pk, "line": "OrderLines/7-A"}

        for patterns, expected in [
            ([longer, shorter], ("line", line)),
            ([shorter, longer], ("one", {"pk": f"{pk}/lines/OrderLines/7-A"})),
        ]:
            urlconf = tuple(patterns)
            match = resolve(reverse("line", urlconf, kwargs=line), urlconf)
            assert (match.url_name, match.kwargs) == expected


class TestHostileUrls:
    """No time is measured: where a pattern tries each end with each, none would end."""

    SIZE = 300_000
    PARTS = [
        *("1/", "4/", "x1/", "/", "0", "9", "a1", "a", "x/", "-A/", "x1/lines/"),
        *("$a/1", "$a:1", "$a:1-A", "$", "$a/x1/lines/", "$orders/4/", "$a"),
        *("x1/lines/OrderLines/", "a/lines/OrderLines/1$", "1-A/lines/orders/"),
    ]

    def test_end_at_once(self):
        for part in self.PARTS:
            for start in ("orders/", "orders/1", "orders/1$", "invoices/1$orders/"):
                text = start + part * (self.SIZE // len(part))
                for end in ("", "!", "/x y/", "\0", "/33-A/lines/"):
                    for count in (1, 2, 3):
                        ids = "/lines/".join([HiLoConverter.regex] * count)
                        assert not re.search(rf"^{ids}/nowhere/\Z", text + end)

    def test_an_anchor_is_read_in_one_way(self):
        text = "/lines/".join(["orders/1" + "$a:1" * 8] * 8)
        ids = "/lines/".join([HiLoConverter.regex] * 8)
        assert re.search(rf"^{ids}\Z", text)
        assert not re.search(rf"^{ids}/nowhere/\Z", text)

    def test_the_most_ends_of_three_ids(self):
        """8 slashes in each of 8 anchors of each id."""
        ids = "/lines/".join([HiLoConverter.regex] * 3)
        for parts in range(9):
            text = "o/" + ("x1/lines/" * parts + "x1$a/") * 2000
            assert not re.search(rf"^{ids}/nowhere/\Z", text)


def test_readers_of_routes_understand_the_pattern():
    """As a lookup_value_regex; see the comment of `ID_PATTERN`."""
    regex = HiLoConverter.regex
    route = rf"^orders/(?P<pk>{regex})/lines/(?P<line>{regex})/$"

    read = replace_named_groups(remove_non_capturing_groups(route))

    assert read == "^orders/<pk>/lines/<line>/$"


class TestRegistration:
    def test_it_happens_once(self):
        registered = REGISTERED_CONVERTERS["hilo"]

        converters.register()

        assert REGISTERED_CONVERTERS["hilo"] is registered

    def test_a_name_that_is_taken_is_not_taken_over_in_silence(self, monkeypatch):
        monkeypatch.setitem(REGISTERED_CONVERTERS, "hilo", object())
        get_converters.cache_clear()
        try:
            # A warning, an error for the tests, before Django 6.
            with pytest.raises((ValueError, Warning), match="already registered"):
                converters.register()
        finally:
            monkeypatch.undo()
            get_converters.cache_clear()

    def test_a_project_has_nothing_to_do(self, python):
        printed = python(
            "from django.http import HttpResponse\n"
            "from django.urls import path, resolve\n"
            "routes = (path('orders/<hilo:pk>/', lambda request, pk: None),)\n"
            "print(resolve('/orders/orders/33-A/', routes).kwargs)"
        )

        assert printed == "{'pk': 'orders/33-A'}"


REQUESTED = [
    *(f"orders{sign}33-A" for sign in sorted(SEPARATORS)),
    "orders/Größe#?%2F/1-A",
    "orders/%41/1-A",
    "orders/a+b;c=d&e/1",
    "invoices/7-A$orders/33-A",
    "x/1$" + " \n\t\r?#%25%&+;=äé…😀\u2028" + '"<>',
    "x/1$$",
    "x/1$.",
]


class TestRequests:
    @pytest.mark.parametrize("text", REQUESTED)
    def test_views_get_the_id(self, text):
        for name in PLAIN:
            answer = Client().get(reverse(f"hilo:{name}", args=[text]))
            assert answer.status_code == 200
            assert answer.content.decode() == text
        answer = Client().get(reverse("hilo:line", args=[text, "OrderLines/7-A"]))
        assert answer.content.decode() == f"{text}\nOrderLines/7-A"

    # The client of Django's tests, unlike servers, reads other paths as Latin-1.
    @pytest.mark.parametrize("text", [*filter(str.isascii, REQUESTED)])
    def test_views_get_the_id_under_asgi(self, text):
        url = reverse("hilo:one", args=[text])

        answer = async_to_sync(AsyncClient().get)(url)

        assert (answer.status_code, answer.content.decode()) == (200, text)


@pytest.mark.django_db
class TestViewsets:
    def test_an_object_and_its_actions(self):
        client = APIClient()
        made = client.post("/api/orders/", {"name": "first"})
        order = Order.objects.get(pk=made.data["id"])
        line = order.lines.create()
        url = f"/api/orders/{order.pk}/"

        assert client.patch(url, {"name": "second"}).data["name"] == "second"
        assert client.get(url + "lines/").data == [line.pk]
        assert client.get(f"/api/orders/{order.pk}/lines.json").json() == [line.pk]
        assert client.get(f"/api/orders/{order.pk}.json").json()["id"] == order.pk
        assert client.delete(url).status_code == 204
        assert client.get(url).status_code == 404
