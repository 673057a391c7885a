"""Every page and action of the counters' admin, as an operator uses them."""

import pytest
from playwright.sync_api import Page, expect

from django_hilo.counters import reserve
from django_hilo.generator import next_ids
from django_hilo.models import HiLoDocument
from example_project.shop.factories import made_up_graph
from example_project.shop.loading import load
from example_project.shop.models import Order

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/hilodocument/"


@pytest.fixture
def shop(superuser):
    """A shop whose counters are at work on both databases."""
    load(made_up_graph(), "default", lambda name, count: None)
    next_ids(Order, 40, using="other")
    reserve("tickets", 500)


def counter(key: str = "orders/A", using: str = "default") -> HiLoDocument:
    return HiLoDocument.objects.using(using).get(pk=key)


def row_of(page: Page, collection: str):
    return page.locator("#result_list tbody tr").filter(
        has=page.get_by_role("link", name=collection, exact=True)
    )


def change(page: Page, number: int) -> None:
    page.locator("input[name=max]").fill(str(number))
    page.get_by_role("button", name="Save", exact=True).click()


def run_action(page: Page, action: str, *collections: str) -> None:
    for collection in collections:
        row_of(page, collection).locator(".action-select").check()
    page.locator("select[name=action]").select_option(action)
    page.locator(".actions button[type=submit]").click()


def test_the_list_tells_how_the_counters_stand(shop, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    orders = row_of(page, "orders")
    expect(orders).to_contain_text("shop.Order")
    expect(orders).to_contain_text("200")
    expect(row_of(page, "tickets")).to_contain_text("no model")
    expect(page.locator("#result_list tbody tr")).to_have_count(5)
    picture(page, "counters")
    page.locator("#searchbar").fill("tick")
    page.locator("#searchbar").press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    picture(open_as(superuser, LIST, scheme="dark"), "counters-dark")


def test_max_is_raised(shop, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.locator("#content")).to_contain_text("orders/201-A to orders/232-A")
    page.get_by_role("link", name="Look it up").click()
    expect(page.locator(".field-highest, .field-highest_on_demand")).to_contain_text(
        "orders/200-A"
    )
    picture(page, "counter")
    page.locator("input[name=max]").fill("5000000000")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("lost: 4,999,999,800,")
    picture(page, "counter-raise")
    page.locator("input[name=max]").fill("1000")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    page.get_by_role("link", name="History").click()
    expect(page.locator("#change-history")).to_contain_text(
        "Raised Max from 200 to 1,000."
    )
    picture(page, "counter-history")
    assert counter().max == 1000
    assert next_ids(Order, 1) == ["orders/1001-A"]


def test_max_is_not_lowered_under_rows(shop, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    page.get_by_role("link", name="orders", exact=True).click()
    change(page, 150)
    expect(page.locator(".errorlist")).to_contain_text("orders/200-A")
    expect(page.locator("input[name=max]")).to_have_value("150")
    assert counter().max == 200


def test_max_is_lowered_after_a_confirmation(shop, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    page.get_by_role("link", name="tickets", exact=True).click()
    change(page, 100)
    expect(page.locator("#content")).to_contain_text(
        "The ids tickets/101-A to tickets/500-A could be given a second time."
    )
    picture(page, "counter-lower")
    page.get_by_role("button", name="Save", exact=True).click()
    assert counter("tickets/A").max == 500
    page.locator("input[name=confirmed]").press("Space")  # by keyboard alone
    page.keyboard.press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert counter("tickets/A").max == 100


def test_a_counter_is_added_and_deleted(shop, open_as, superuser):
    page = open_as(superuser, LIST)
    page.get_by_role("link", name="Add counter").click()
    page.locator("select[name=database]").select_option("default")
    page.locator("input[name=collection]").fill("Invoices-2027")
    page.locator("input[name=max]").fill("1024")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    assert next_ids("invoices-2027", 1) == ["invoices-2027/1025-A"]
    page.get_by_role("link", name="invoices-2027", exact=True).click()
    page.locator("a.deletelink").click()
    page.locator("input[name=confirmed]").check()
    page.get_by_role("button", name="Yes, delete the counter").click()
    expect(page.locator(".messagelist")).to_contain_text("deleted successfully")
    assert not HiLoDocument.objects.filter(collection="invoices-2027").exists()


def test_a_block_is_reserved_once(shop, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    run_action(page, "reserve_block", "orders")
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("#result_list")).to_be_visible()
    assert counter().max == 200
    run_action(page, "reserve_block", "orders")
    page.locator("input[name=size]").fill("1000")
    page.get_by_role("button", name="Reserve").click()
    expect(page.locator(".messagelist")).to_contain_text(
        "the block 201 to 1,200 is yours, as ids orders/201-A to orders/1200-A"
    )
    picture(page, "counter-block-reserved")
    page.reload()
    assert counter().max == 1200
