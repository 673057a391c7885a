"""The admin of server prefixes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from django_hilo.generator import next_ids
from django_hilo.models import ServerPrefix

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/serverprefix/"


def test_a_prefix_is_added(open_as, superuser, picture):
    page = open_as(superuser, f"{LIST}add/")
    prefix = page.locator("input[name=prefix]")
    prefix.fill("North7")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("must end in a character")
    prefix.fill("NorthServer/")
    picture(page, "prefix-add")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    assert next_ids("orders", 1) == ["orders/NorthServer/1-A"]


def test_a_prefix_is_changed_and_deleted(open_as, superuser):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    page = open_as(superuser, LIST)
    expect(page.locator("#result_list")).to_contain_text("orders/North/33-A")
    page.get_by_role("link", name="A", exact=True).click()
    page.locator("input[name=prefix]").fill("South/")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert ServerPrefix.objects.get().prefix == "South/"
    page.get_by_role("link", name="A", exact=True).click()
    page.locator("a.deletelink").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator(".messagelist")).to_contain_text("deleted successfully")
    assert not ServerPrefix.objects.exists()
