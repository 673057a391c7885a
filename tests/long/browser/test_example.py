"""The example's page for people, and the pages that it links to."""

import pytest
from playwright.sync_api import expect

from example_project.shop.factories import made_up_graph
from example_project.shop.loading import load
from example_project.shop.models import Order

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_the_front_page_leads_to_counters_and_documentation(
    open_as, superuser, picture
):
    load(made_up_graph(), "default", lambda name, count: None)
    page = open_as(superuser, "/")
    expect(page.get_by_role("row", name="orders A order 200")).to_be_visible()
    picture(page, "front-page")
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.locator("input[name=max]")).to_have_value("200")
    page.go_back()
    page.get_by_role("link", name="API documentation").click()
    expect(
        page.get_by_text("/api/hilo/collections/{collection}/next-id/")
    ).to_be_visible()


def test_ids_are_taken_on_a_page_of_the_browsable_api(open_as, superuser, complaints):
    Order.objects.next_id()
    page = open_as(superuser, "/api/hilo/collections/orders/next-id/")
    complaints.clear()  # of 405: the address is only for POST
    page.locator("input[name=count]").fill("2")
    page.get_by_role("button", name="POST").click()
    expect(page.locator(".response-info")).to_contain_text("orders/3-A")
