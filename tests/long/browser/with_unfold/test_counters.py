"""The same pages in Unfold's theme: they must work there, and look like the others."""

import pytest
from playwright.sync_api import expect

from django_hilo.counters import reserve
from django_hilo.models import HiLoDocument

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/hilodocument/"


def max_of(key: str) -> int:
    return HiLoDocument.objects.get(pk=key).max


@pytest.fixture
def counters(superuser):
    reserve("orders", 200)
    reserve("tickets", 500)
    reserve("orders", 40, using="other")


def test_list_change_and_confirmation(counters, open_as, superuser, picture):
    page = open_as(superuser, LIST)
    expect(page.locator("#result_list")).to_contain_text("shop.Order")
    page.get_by_role("link", name="tickets", exact=True).click()
    page.locator("input[name=max]").fill("900")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("changed successfully")).to_be_visible()
    assert max_of("tickets/A") == 900
    page.get_by_role("link", name="tickets", exact=True).click()
    page.locator("input[name=max]").fill("100")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("tickets/101-A to tickets/900-A")).to_be_visible()
    picture(page, "unfold-counter-lower")
    page.locator("input[name=confirmed]").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("changed successfully")).to_be_visible()
    assert max_of("tickets/A") == 100


def test_a_block(counters, open_as, superuser):
    page = open_as(superuser, LIST)
    box = page.locator("#result_list").locator("input[value='orders/A']")
    box.check()
    page.locator("select[name=action]").select_option("reserve_block")
    page.get_by_role("button", name="Run").click()
    page.locator("input[name=size]").fill("1000")
    page.get_by_role("button", name="Reserve").click()
    expect(page.get_by_text("orders/201-A to orders/1200-A")).to_be_visible()
    assert max_of("orders/A") == 1200
