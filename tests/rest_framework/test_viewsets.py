"""Viewsets of users' own models, whose keys hold slashes."""

from urllib.parse import unquote

import pytest
from django.urls import include, path, resolve, reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter, SimpleRouter
from rest_framework.test import APIClient

from django_hilo.identifiers import ID_PATTERN
from tests.apps.records.models import Invoice, Order, OrderLine


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


def found(url):
    match = resolve(unquote(url))
    return match.url_name, match.kwargs


# That the pattern takes each id, and no more, is in tests/test_converters.py.
@pytest.mark.parametrize(
    "text", ["orders/33-A", "orders/NorthServer/1", "invoices/7-A$orders/33-A"]
)
def test_routes_lead_back_to_the_id(text):
    for name, more in [
        ("order-detail", {}),
        ("order-lines", {}),
        ("order-second", {}),
        ("order-place", {"number": "5"}),
    ]:
        kwargs = {"pk": text, **more}
        for space in ("", "bare:"):
            assert found(reverse(f"{space}{name}", kwargs=kwargs)) == (name, kwargs)
        kwargs["format"] = "json"
        assert found(reverse(name, kwargs=kwargs)) == (name, kwargs)


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


def test_the_schema_of_routes_with_the_converter(capsys, monkeypatch):
    for view in (LineViewSet, InvoiceViewSet):
        monkeypatch.setattr(view, "lookup_value_converter", "hilo", raising=False)
        monkeypatch.setattr(view, "schema", AutoSchema(), raising=False)
    router = DefaultRouter(use_regex_path=False)
    router.register("lines", LineViewSet)
    router.register("invoices", InvoiceViewSet)

    paths = SchemaGenerator(patterns=router.urls).get_schema(public=True)["paths"]

    assert capsys.readouterr().err == ""
    for route in ("/lines/{id}/", "/invoices/{id}/"):
        (parameter,) = paths[route]["get"]["parameters"]
        assert parameter["schema"] == {"type": "string"}
