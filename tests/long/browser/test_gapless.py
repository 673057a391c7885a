"""The admin of gapless counters."""

import pytest
from playwright.sync_api import expect

from django_hilo.counters import next_gapless_numbers
from django_hilo.models import GaplessCounter

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/gaplesscounter/"


def test_a_counter_is_started_raised_and_not_lowered(open_as, superuser):
    next_gapless_numbers("letters", 41)
    page = open_as(superuser, f"{LIST}add/")
    page.locator("input[name=collection]").fill("claims")
    page.locator("input[name=last]").fill("1990")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    expect(page.locator("#result_list")).to_contain_text("claims/1991")
    expect(page.locator("#result_list")).to_contain_text("letters/42")
    page.get_by_role("link", name="letters", exact=True).click()
    page.locator("input[name=last]").fill("40")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("is not lowered here")
    page.locator("input[name=last]").fill("100")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("42 to 100 will never be")
    page.get_by_label("Skip these numbers").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert GaplessCounter.objects.get(pk="letters").last == 100
    page.goto(page.url.split("/admin/")[0] + f"{LIST}letters/history/")
    expect(page.locator("#change-history")).to_contain_text("100")
