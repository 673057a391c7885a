"""The example's page for people, and the pages that it links to."""

from datetime import date
from decimal import Decimal

import pytest
from playwright.sync_api import expect

from django_hilo.counters import reserve
from example_project.shop.factories import (
    CustomerFactory,
    OrderFactory,
    OrderLineFactory,
    ProductFactory,
    made_up_graph,
)
from example_project.shop.loading import load
from example_project.shop.models import Invoice, Order

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_the_front_page_leads_to_counters_and_documentation(open_as, superuser):
    load(made_up_graph(), "default", lambda name, count: None)
    page = open_as(superuser, "/")
    expect(page.get_by_role("row", name="orders A order 200")).to_be_visible()
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.locator("input[name=max]")).to_have_value("200")
    page.go_back()
    page.get_by_role("link", name="API documentation").click()
    expect(
        page.get_by_text("/api/hilo/collections/{collection}/next-id/")
    ).to_be_visible()


def test_an_order_shows_the_ids_of_its_lines_and_its_invoice(
    open_as, superuser, picture
):
    reserve("orders", 32)
    customer = CustomerFactory(code="VINET", name="Vins et alcools Chevalier")
    order = OrderFactory(
        number=10248,
        customer=customer,
        ordered_on=date(2026, 11, 4),
        shipped_on=date(2026, 11, 16),
        freight=Decimal("32.38"),
    )
    for name, price, quantity in [
        ("Queso Cabrales", "14.00", 12),
        ("Singaporean Hokkien Fried Mee", "9.80", 10),
        ("Mozzarella di Giovanni", "34.80", 5),
    ]:
        product = ProductFactory(name=name, unit_price=Decimal(price))
        OrderLineFactory(order=order, product=product, quantity=quantity, discount=0)
    Invoice.objects.create(
        order=order, issued_on=order.shipped_on, total=Decimal("472.38")
    )
    page = open_as(superuser, order.get_absolute_url())
    page.set_viewport_size({"width": 1280, "height": 640})
    expect(page.locator("tbody")).to_contain_text("OrderLines/3-A")
    expect(page.locator("tfoot")).to_contain_text("472.38")
    picture(page, "order")
    page.get_by_role("link", name="INV-").click()
    expect(page.get_by_role("heading")).to_contain_text("Invoice INV-")


def test_ids_are_taken_on_a_page_of_the_browsable_api(open_as, superuser, complaints):
    Order.objects.next_id()
    page = open_as(superuser, "/api/hilo/collections/orders/next-id/")
    complaints.clear()  # of 405: the address is only for POST
    page.locator("input[name=count]").fill("2")
    page.get_by_role("button", name="POST").click()
    expect(page.locator(".response-info")).to_contain_text("orders/3-A")
