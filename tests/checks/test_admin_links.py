"""The check W115, and the links that it warns of."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.checks import Tags, run_checks

from tests.apps.numbers.models import Item
from tests.apps.records.admin import OrderAdmin, OrderLineInline
from tests.apps.records.models import Bistro, Order, OrderLine

pytestmark = pytest.mark.django_db
ADMINS = (OrderAdmin, OrderLineInline)


@pytest.fixture(autouse=True)
def sites(monkeypatch):
    """Other tests leave sites of their own."""
    monkeypatch.setattr("django.contrib.admin.sites.all_sites", {admin.site})


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    for model in (Order, OrderLine, Bistro, Item):
        monkeypatch.setattr(
            model, "get_absolute_url", lambda self: f"/site/{self.pk}/", raising=False
        )


@pytest.fixture
def links(admin_client):
    """Follow the links of an order and its line; return where each leads."""

    def follow() -> list[str | int]:
        order = Order.objects.create()
        OrderLine.objects.create(order=order)
        page = admin_client.get(f"/admin/records/order/{quote(order.pk)}/change/")
        assert page.status_code == 200
        found = re.findall(r'href="([^"]+)"[^>]*>View on site', page.content.decode())
        return [place_of(link) for link in found]

    def place_of(link: str) -> str | int:
        if not link.startswith("/admin/"):
            return link
        answer = admin_client.get(link)
        return getattr(answer, "url", answer.status_code)

    return follow


def warned() -> list[object]:
    found = run_checks(tags=[Tags.urls])
    assert {each.id for each in found} <= {"django_hilo.W115"}
    return [each.obj for each in found]


def test_links_that_lead_nowhere(links):
    assert links() == [404, 404]
    assert warned() == [OrderAdmin, OrderLineInline]


def test_the_method_of_the_hint(links, monkeypatch):
    hint = run_checks(tags=[Tags.urls])[0].hint
    read: dict[str, object] = {}
    exec(hint.removeprefix("Add the method: "), read)
    for each in ADMINS:
        monkeypatch.setattr(each, "view_on_site", read["view_on_site"])
    assert links() == ["/site/orders/1-A/", "/site/OrderLines/1-A/"]
    assert warned() == []


def test_another_separator(links, settings):
    settings.HILO = {**settings.HILO, "SEPARATOR": ":"}
    urls = [
        "http://testserver/site/orders:1-A/",
        "http://testserver/site/OrderLines:1-A/",
    ]
    assert links() == urls
    assert warned() == []


def test_keys_of_parents_on_another_site():
    site = admin.AdminSite(name="office")
    site.register([Bistro, Item])
    assert warned() == [admin.ModelAdmin, OrderAdmin, OrderLineInline]
    assert "each id of Bistro" in run_checks(tags=[Tags.urls])[0].msg
