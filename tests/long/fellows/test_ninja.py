import pytest
from django.urls import path
from ninja import ModelSchema, NinjaAPI, Schema, Status

from tests.long.fellows.market.models import Invoice, Order

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


@api.post("/orders", response={201: OrderOut})
def create_order(request, data: OrderIn):
    return Status(201, Order.objects.create(**data.dict()))


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


def test_its_schema():
    schema = api.get_openapi_schema()
    order = schema["components"]["schemas"]["OrderOut"]["properties"]["id"]
    assert "string" in [each.get("type") for each in (order.get("anyOf") or [order])]
    (parameter,) = schema["paths"]["/api/orders/{order_id}"]["get"]["parameters"]
    assert parameter["schema"]["type"] == "string"
