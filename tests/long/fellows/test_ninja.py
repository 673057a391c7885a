from __future__ import annotations

import pytest
from django.urls import path
from ninja import ModelSchema, NinjaAPI, Schema, Status
from ninja.pagination import paginate

from tests.long.fellows.market.models import Invoice, Order, Ticket

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

api = NinjaAPI(urls_namespace="fellows")


class OrderOut(ModelSchema):
    class Meta:
        model = Order
        fields = ["id", "name"]


class OrderIn(ModelSchema):
    class Meta:
        model = Order
        fields = ["name"]


class InvoiceOut(ModelSchema):
    order: OrderOut

    class Meta:
        model = Invoice
        fields = ["id", "order"]


class InvoiceIn(Schema):
    order_id: str


class TicketOut(ModelSchema):
    class Meta:
        model = Ticket
        fields = "__all__"


@api.post("/orders", response={201: OrderOut})
def create_order(request, data: OrderIn):
    return Status(201, Order.objects.create(**data.dict()))


@api.get("/orders", response=list[OrderOut])
@paginate
def list_orders(request, from_number: int = 1):
    orders = Order.objects.filter(id__number__gte=from_number)
    return orders.order_by("id__number")


@api.get("/orders/{hilo:order_id}", response=OrderOut)
def get_order(request, order_id: str):
    return Order.objects.get(pk=order_id)


@api.get("/orders/{hilo:order_id}/invoices", response=list[InvoiceOut])
def invoices_of(request, order_id: str):
    return Invoice.objects.filter(order_id=order_id)


@api.post("/invoices", response=InvoiceOut)
def create_invoice(request, data: InvoiceIn):
    return Invoice.objects.create(**data.dict())


@api.get("/invoices/{hilo:invoice_id}", response=InvoiceOut, url_name="invoice")
def get_invoice(request, invoice_id: str):
    return Invoice.objects.get(pk=invoice_id)


@api.post("/tickets", response=TicketOut)
def create_ticket(request):
    return Ticket.objects.create(name="ticket")


@api.get("/plain/{order_id}")
def by_a_plain_parameter(request, order_id: str):
    return order_id


urlpatterns = [path("api/", api.urls)]


def post(client, url, data=None):
    return client.post(url, data or {}, content_type="application/json")


def test_create_and_read(client):
    created = post(client, "/api/orders", {"name": "tea"})
    assert (created.status_code, created.json()) == (
        201,
        {"id": "orders/1-A", "name": "tea"},
    )
    assert client.get("/api/orders/orders/1-A").json() == created.json()


def test_what_follows_an_id_is_not_part_of_it(client):
    post(client, "/api/orders", {"name": "tea"})
    invoice = post(client, "/api/invoices", {"order_id": "orders/1-A"}).json()
    assert invoice == {
        "id": "invoices/1-A$orders/1-A",
        "order": {"id": "orders/1-A", "name": "tea"},
    }
    assert client.get("/api/orders/orders/1-A/invoices").json() == [invoice]
    assert client.get("/api/invoices/invoices/1-A$orders/1-A").json() == invoice


def test_urls_of_ids():
    from django.urls import reverse

    url = reverse("fellows:invoice", kwargs={"invoice_id": "invoices/1-A$orders/1-A"})
    assert url == "/api/invoices/invoices/1-A$orders/1-A"


def test_a_parameter_without_a_converter_ends_at_a_slash(client):
    """As every <str:...> of Django."""
    assert client.get("/api/plain/33").json() == "33"
    assert client.get("/api/plain/orders/33-A").status_code == 404
    assert client.get("/api/plain/orders%2F33-A").status_code == 404


def test_pages_in_order_of_numbers(client):
    Order.objects.bulk_create([Order() for _ in range(12)])
    page = client.get("/api/orders?from_number=9&limit=2").json()
    assert [order["id"] for order in page["items"]] == ["orders/9-A", "orders/10-A"]
    assert page["count"] == 4


def test_integer_keys(client):
    ticket = post(client, "/api/tickets").json()
    assert ticket == {"id": Ticket.objects.get().pk, "name": "ticket"}


def test_its_schema():
    schemas = api.get_openapi_schema()["components"]["schemas"]
    assert "name" in schemas["OrderIn"]["properties"]
    types = {
        name: [each.get("type") for each in (id.get("anyOf") or [id])]
        for name in ("OrderOut", "TicketOut")
        for id in [schemas[name]["properties"]["id"]]
    }
    assert "string" in types["OrderOut"]
    assert "integer" in types["TicketOut"]
    (parameter,) = api.get_openapi_schema()["paths"]["/api/orders/{order_id}"]["get"][
        "parameters"
    ]
    assert parameter["schema"]["type"] == "string"
