"""The admin of a user's own models, whose ids hold slashes and dollars."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from django_hilo.models import ServerPrefix
from example_project.shop.factories import (
    CustomerFactory,
    OrderFactory,
    OrderLineFactory,
    ProductFactory,
)
from example_project.shop.models import Invoice, Order, OrderLine

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture
def order(superuser) -> Order:
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    made = OrderFactory(number=10248, customer=CustomerFactory(code="VINET"))
    OrderLineFactory(order=made, product=ProductFactory(name="Queso Cabrales"))
    ProductFactory(name="Tofu")
    return made


def test_an_order_is_found_changed_and_deleted(order, open_as, superuser):
    page = open_as(superuser)
    page.get_by_role("link", name="Orders").first.click()
    page.locator("#searchbar").fill("orders/North/1-A")
    page.locator("#searchbar").press("Enter")
    page.get_by_role("link", name="10248").click()
    expect(page.locator(".add-row a")).to_be_visible()
    assert page.url.endswith(
        f"/{'orders_2FNorth_2F1-A'}/change/?_changelist_filters="
        "q%3Dorders%252FNorth%252F1-A"
    )
    page.locator(".add-row a").click()
    row = page.locator("#lines-1")
    row.locator(".select2-selection").click()
    page.locator(".select2-search__field").fill("tof")
    page.get_by_role("option", name="Tofu").click()
    row.locator("input[name$=unit_price]").fill("7.50")
    row.locator("input[name$=quantity]").fill("3")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("was changed successfully")
    assert set(OrderLine.objects.values_list("pk", flat=True)) == {
        "OrderLines/North/1-A$orders/North/1-A",
        "OrderLines/North/2-A$orders/North/1-A",
    }
    page.get_by_role("link", name="History").click()
    expect(page.locator("#change-history")).to_contain_text("Added order line")
    page.go_back()
    page.locator("a.deletelink").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator(".messagelist")).to_contain_text("was deleted successfully")
    assert not Order.objects.exists()


def test_an_invoice_is_added_by_hand(order, open_as, superuser):
    page = open_as(superuser, reverse("admin:shop_invoice_add"))
    page.locator(".select2-selection").click()
    page.locator(".select2-search__field").fill("10248")
    page.get_by_role("option").filter(has_text="10248").click()
    page.locator("input[name=issued_on]").fill("2026-01-31")
    page.locator("input[name=total]").fill("22.50")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    made = Invoice.objects.get()
    assert made.pk == "invoices/1"
    page.locator(".messagelist a").click()
    expect(page.locator("input[name=total]")).to_have_value("22.50")
    page.locator("input[name=total]").fill("23")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    made.refresh_from_db()
    assert made.total == 23


def test_a_new_customer_from_the_popup_of_an_order(order, open_as, superuser):
    page = open_as(superuser, reverse("admin:shop_order_change", args=[order.pk]))
    with page.expect_popup() as opened:
        page.locator("#add_id_customer").click()
    popup = opened.value
    popup.locator("input[name=code]").fill("NEW")
    popup.locator("input[name=name]").fill("A new one")
    popup.get_by_role("button", name="Save").click()
    expect(page.locator("#id_customer")).to_have_value("customers/North/2-A")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    order.refresh_from_db()
    assert order.customer_id == "customers/North/2-A"
