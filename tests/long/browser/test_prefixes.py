"""The admin of server prefixes."""

import pytest
from playwright.sync_api import expect

from django_hilo.generator import next_ids

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/serverprefix/"


def test_a_prefix_is_added(open_as, superuser, picture):
    page = open_as(superuser, f"{LIST}add/")
    prefix = page.locator("input[name=prefix]")
    prefix.fill("North7")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("must not end in a digit")
    prefix.fill("NorthServer/")
    picture(page, "prefix-add")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    assert next_ids("orders", 1) == ["orders/NorthServer/1-A"]
