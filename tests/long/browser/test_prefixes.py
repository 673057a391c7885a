"""The admin of server prefixes, whose preview is a static script."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from django_hilo.counters import reserve
from django_hilo.generator import next_ids
from django_hilo.models import ServerPrefix

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LIST = "/admin/django_hilo/serverprefix/"


def test_the_next_id_is_shown_while_a_prefix_is_typed(open_as, superuser, picture):
    reserve("orders", 32)
    page = open_as(superuser, f"{LIST}add/")
    prefix, preview = page.locator("input[name=prefix]"), page.locator("output")
    expect(preview).to_have_text("Next id: orders/33-A")
    prefix.press_sequentially("NorthServer/")
    expect(preview).to_have_text("Next id: orders/NorthServer/33-A")
    picture(page, "prefix-add")
    page.locator("input[name=node_tag]").fill("C")
    expect(preview).to_have_text("Next id: orders/NorthServer/1-C")
    prefix.fill("North7")
    expect(preview).to_contain_text("Not a prefix")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist")).to_contain_text("must end in a character")
    prefix.fill("North/")
    page.locator("input[name=node_tag]").fill("A")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("added successfully")
    assert next_ids("orders", 1) == ["orders/North/33-A"]


def test_a_prefix_is_changed_and_deleted(open_as, superuser):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    page = open_as(superuser, LIST)
    expect(page.locator("#result_list")).to_contain_text("orders/North/1-A")
    page.get_by_role("link", name="A", exact=True).click()
    expect(page.locator("output")).to_have_text("Next id: orders/North/1-A")
    page.locator("input[name=prefix]").fill("South/")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert ServerPrefix.objects.get().prefix == "South/"
    page.get_by_role("link", name="A", exact=True).click()
    page.locator("a.deletelink").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator(".messagelist")).to_contain_text("deleted successfully")
    assert not ServerPrefix.objects.exists()
