"""Viewsets of users' own models, whose keys hold slashes."""

import re
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.urls import NoReverseMatch, include, path, resolve, reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from hypothesis import example, given
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter, SimpleRouter
from rest_framework.test import APIClient

from django_hilo.checks.viewsets import check_viewsets
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import ID_PATTERN, SEPARATORS, parse
from tests.apps.records.models import Invoice, Order, OrderLine
from tests.test_identifiers import document_ids


class LineSerializer(serializers.ModelSerializer):
    class Meta:
        model = OrderLine
        fields = ["id", "order", "quantity"]


class OrderSerializer(serializers.ModelSerializer):
    lines = serializers.PrimaryKeyRelatedField(many=True, read_only=True)

    class Meta:
        model = Order
        fields = ["id", "name", "lines"]


class LinkedInvoiceSerializer(serializers.HyperlinkedModelSerializer):
    class Meta:
        model = Invoice
        fields = ["url", "id", "order"]


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("id__number")
    serializer_class = OrderSerializer
    lookup_value_regex = ID_PATTERN

    @action(detail=True)
    def lines(self, request, pk, format=None):
        return Response([line.pk for line in self.get_object().lines.all()])

    @action(detail=True, url_path="v2")
    def second(self, request, pk, format=None):
        return Response({"v2": pk})

    @action(detail=True, url_path=r"places/(?P<number>[0-9]+)")
    def place(self, request, pk, number, format=None):
        return Response({"place": number})

    @action(detail=False)
    def newest(self, request, format=None):
        return Response(self.get_queryset().last().pk)


class LineViewSet(viewsets.ModelViewSet):
    queryset = OrderLine.objects.all()
    serializer_class = LineSerializer
    lookup_value_regex = ID_PATTERN


class InvoiceViewSet(viewsets.ModelViewSet):
    queryset = Invoice.objects.all()
    serializer_class = LinkedInvoiceSerializer
    lookup_value_regex = ID_PATTERN


def _routes(router):
    router.register("orders", OrderViewSet)
    router.register("lines", LineViewSet)
    router.register("invoices", InvoiceViewSet)
    return router.urls


urlpatterns = [
    # With format suffixes, and without slashes at the end.
    path("api/", include(_routes(DefaultRouter()))),
    path("bare/", include((_routes(SimpleRouter(trailing_slash=False)), "bare"))),
]

pytestmark = pytest.mark.urls(__name__)


def parts_of(text):
    """Yield the id and the parts of its anchor; None for a part that is no id."""
    for part in text.split("$"):
        try:
            yield part, parse(part)
        except InvalidDocumentId:
            yield part, None


def fits_in_urls(text):
    """Whether an id is none of those that `ID_PATTERN` leaves out."""
    if text.count("$") > 8:
        return False
    for part, document_id in parts_of(text):
        if document_id is None:
            if "/" in part:
                return False
        else:
            pieces = document_id.server_prefix.split("/")[:-1]
            if len(pieces) > 8 or any(
                re.fullmatch(r"[1-9][0-9]*(-[A-Z]{1,4})?", p) for p in pieces
            ):
                return False
    return True


def found(url):
    match = resolve(unquote(url))
    return match.url_name, match.kwargs


# No URL, and no database, takes half a character.
ids = document_ids.map(str).filter(lambda text: not re.search("[\ud800-\udfff]", text))


@given(ids.filter(fits_in_urls))
@example("orders/33-A")
@example("orders/NorthServer/1")
@example("orders/node2/1-A")
@example("invoices/7-A$orders/33-A")
@example("x/1$$")
@example("x/1$a$orders/N/2-A$b")
@example("orders(33-A")
@example("orders\\33-A")
def test_urls_of_ids_lead_back(text):
    assert re.fullmatch(ID_PATTERN, text)
    for name, url_name in [
        ("order-detail", "order-detail"),
        ("order-lines", "order-lines"),
        ("bare:order-detail", "order-detail"),
        ("bare:order-lines", "order-lines"),
    ]:
        assert found(reverse(name, args=[text])) == (url_name, {"pk": text})
    for name in ("order-detail", "order-lines"):
        url = reverse(name, args=[text, "json"])
        assert found(url) == (name, {"pk": text, "format": "json"})


# A server prefix that ends in a slash, or none, and anchors that are ids: elsewhere an
# action that ends in a number could be a part of the id.
def ends_plainly(text):
    return all(
        document_id is not None
        and (not document_id.server_prefix or document_id.server_prefix.endswith("/"))
        for _, document_id in parts_of(text)
    )


@given(ids.filter(fits_in_urls).filter(ends_plainly))
@example("orders/33-A")
@example("orders/NorthServer/1")
@example("invoices/7-A$orders/33-A")
def test_actions_whose_names_end_in_numbers(text):
    for space in ("", "bare:"):
        url = reverse(f"{space}order-second", args=[text])
        assert found(url) == ("order-second", {"pk": text})
        kwargs = {"pk": text, "number": "5"}
        url = reverse(f"{space}order-place", kwargs=kwargs)
        assert found(url) == ("order-place", kwargs)


@pytest.mark.parametrize(
    "text",
    [
        "orders/4/33-A",
        "orders/N/7-B/33-A",
        "orders/" + "a/" * 9 + "1",
        "orders/1" + "$" * 9,
        "invoices/7-A$2026/10",
        "orders/33-A/lines",
        "orders/",
        "orders/0-A",
        "orders/33-a",
        "33-A",
    ],
)
def test_what_the_pattern_leaves_out(text):
    assert not re.fullmatch(ID_PATTERN, text)
    with pytest.raises(NoReverseMatch):
        reverse("order-detail", args=[text])


def test_every_separator_and_no_other_sign():
    signs = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]

    taken = {sign for sign in signs if re.fullmatch(ID_PATTERN, f"orders{sign}33-A")}

    assert taken == SEPARATORS


@pytest.fixture
def client():
    return APIClient()


@pytest.mark.django_db
class TestRequests:
    def test_an_object_from_its_birth_to_its_end(self, client):
        made = client.post("/api/orders/", {"name": "first", "id": "orders/99-A"})
        url = f"/api/orders/{made.data['id']}/"

        assert (made.status_code, made.data["id"]) == (201, "orders/1-A")
        assert client.get(url).data["name"] == "first"
        assert client.patch(url, {"name": "second"}).data["name"] == "second"
        assert client.put(url, {"name": "third"}).data["id"] == "orders/1-A"
        assert client.get(url[:-1] + ".json").json()["name"] == "third"
        assert client.delete(url).status_code == 204
        assert client.get(url).status_code == 404

    def test_actions(self, client):
        order = Order.objects.create()
        line = order.lines.create()

        assert client.get(f"/api/orders/{order.pk}/lines/").data == [line.pk]
        assert client.get(f"/api/orders/{order.pk}/lines.json").data == [line.pk]
        assert client.get(f"/api/orders/{order.pk}/v2/").data == {"v2": order.pk}
        assert client.get(f"/api/orders/{order.pk}/places/5/").data == {"place": "5"}
        assert client.get("/api/orders/newest/").data == order.pk
        assert client.get(f"/bare/orders/{order.pk}/lines").data == [line.pk]

    def test_relations_take_ids(self, client):
        order = Order.objects.create()

        made = client.post("/api/lines/", {"order": order.pk, "quantity": 3})
        wrong = client.post("/api/lines/", {"order": "orders/99-A"})

        assert made.data == {"id": "OrderLines/1-A", "order": order.pk, "quantity": 3}
        assert wrong.status_code == 400
        assert "orders/99-A" in wrong.data["order"][0]

    def test_links(self, client):
        order = Order(id="orders/North 2/7-A".replace(" ", ""))
        order.save()
        link = f"http://testserver/api/orders/{order.pk}/"

        made = client.post("/api/invoices/", {"order": link})

        assert made.data["id"] == "invoices/1-A$orders/North2/7-A"
        assert made.data["url"].endswith(f"/api/invoices/{made.data['id']}/")
        assert client.get(made.data["url"]).data == made.data
        assert made.data["order"] == link

    @pytest.mark.parametrize(
        "path",
        [
            "orders/9-A",
            "orders/1-A/nothing",
            "orders/1-A%00",
            "orders/1$%00",
            "1",
            "orders/" + "9" * 500,
            "orders%2F1-A/2",
        ],
    )
    def test_what_no_object_has_is_404(self, client, path):
        Order.objects.create()

        assert client.get(f"/api/orders/{path}/").status_code == 404

    def test_the_list_is_in_order_of_numbers(self, client):
        for number in (10, 9):
            Order(id=f"orders/{number}-A").save()

        listed = client.get("/api/orders/").data

        assert [order["id"] for order in listed] == ["orders/9-A", "orders/10-A"]

    def test_the_browsable_api(self, client):
        order = Order.objects.create()
        order.lines.create()

        for url in ("/api/orders/", f"/api/orders/{order.pk}/", "/api/lines/"):
            page = client.get(url, HTTP_ACCEPT="text/html")
            assert page.status_code == 200
            assert order.pk in page.content.decode()


class TestCheck:
    def test_views_whose_routes_match_ids(self, monkeypatch):
        assert check_viewsets() == []
        monkeypatch.delattr(OrderViewSet, "lookup_value_regex")
        monkeypatch.setattr(OrderViewSet, "lookup_value_converter", "hilo", False)
        assert check_viewsets() == []

    def test_views_whose_routes_match_no_id(self, monkeypatch):
        monkeypatch.delattr(OrderViewSet, "lookup_value_regex")
        [warning] = run_checks(tags=["urls"])
        assert (warning.id, warning.obj) == ("django_hilo.W113", OrderViewSet)
        assert "OrderViewSet match no id of Order" in warning.msg

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("lookup_field", "name"),
            ("queryset", None),
            ("queryset", User.objects.all()),
        ],
    )
    def test_views_of_other_keys(self, monkeypatch, name, value):
        monkeypatch.delattr(OrderViewSet, "lookup_value_regex")
        monkeypatch.setattr(OrderViewSet, name, value)
        assert check_viewsets() == []

    @pytest.mark.parametrize("urls", [None, ""])
    def test_a_project_without_urls(self, settings, urls):
        settings.ROOT_URLCONF = urls
        assert run_checks(tags=["urls"]) == []

    def test_ids_that_every_route_matches(self, monkeypatch, settings):
        monkeypatch.delattr(OrderViewSet, "lookup_value_regex")
        settings.HILO = {**settings.HILO, "SEPARATOR": ":"}
        assert check_viewsets() == []


def test_the_schema(capsys, monkeypatch):
    for view in (OrderViewSet, LineViewSet, InvoiceViewSet):
        monkeypatch.setattr(view, "schema", AutoSchema(), raising=False)

    schema = SchemaGenerator(patterns=urlpatterns[:1]).get_schema(public=True)

    assert capsys.readouterr().err == ""
    assert set(schema["paths"]) == {
        "/api/orders/",
        "/api/orders/{id}/",
        "/api/orders/{id}/lines/",
        "/api/orders/{id}/places/{number}/",
        "/api/orders/{id}/v2/",
        "/api/orders/newest/",
        "/api/lines/",
        "/api/lines/{id}/",
        "/api/invoices/",
        "/api/invoices/{id}/",
    }
    (parameter,) = schema["paths"]["/api/orders/{id}/"]["get"]["parameters"]
    assert parameter["schema"] == {"type": "string", "pattern": f"^{ID_PATTERN}$"}
