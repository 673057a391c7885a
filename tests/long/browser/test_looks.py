"""Every page fits a screen of 1280 pixels and a phone, light and dark."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from django_hilo.counters import next_gapless_numbers, reserve
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.sources import hibernate
from example_project.shop.factories import made_up_graph
from example_project.shop.loading import load

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

ADMIN = "/admin/django_hilo/"
COUNTERS = f"{ADMIN}hilodocument/"
API = "/api/hilo/"
PAGES = {
    "index": "/admin/",
    "counters": COUNTERS,
    "counter": f"{COUNTERS}orders_2FA/change/",
    "counter-highest": f"{COUNTERS}orders_2FA/change/?highest=1",
    "counter-add": f"{COUNTERS}add/",
    "counter-delete": f"{COUNTERS}tickets_2FA/delete/",
    "counter-delete-refused": f"{COUNTERS}orders_2FA/delete/",
    "counter-history": f"{COUNTERS}tickets_2FA/history/",
    "gapless": f"{ADMIN}gaplesscounter/",
    "gapless-series": f"{ADMIN}gaplesscounter/?series=shop.Invoice.number",
    "gapless-add": f"{ADMIN}gaplesscounter/add/",
    "gapless-change": f"{ADMIN}gaplesscounter/letters/change/",
    "prefixes": f"{ADMIN}serverprefix/",
    "prefix-add": f"{ADMIN}serverprefix/add/",
    "prefix-change": f"{ADMIN}serverprefix/Z/change/",
    "prefix-delete": f"{ADMIN}serverprefix/Z/delete/",
    "front-page": "/",
    "shop-customers": "/customers/",
    "shop-products": "/products/",
    "shop-orders": "/orders/",
    "shop-order": "/order/orders/1-A/",
    "shop-invoice": "/invoice/invoices/1/",
    "shop-admin-orders": "/admin/shop/order/",
    "shop-admin-invoices": "/admin/shop/invoice/",
    "shop-admin-products": "/admin/shop/product/",
    "shop-admin-lines": "/admin/shop/orderline/",
    "rest-counters": f"{API}documents/",
    "rest-counter": f"{API}documents/orders/A/",
    "rest-next-id": f"{API}collections/orders/next-id/",
    "rest-ranges": f"{API}collections/orders/ranges/",
    "rest-return": f"{API}collections/orders/ranges/return/",
    "rest-prefixes": f"{API}prefixes/",
    "rest-prefix": f"{API}prefixes/Z/",
    "rest-gapless": f"{API}gapless/letters/next/",
}
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture
def shop(superuser, settings):
    load(made_up_graph(), "default", lambda name, count: None)
    reserve("tickets", 500)
    HiLoDocument.objects.create(
        collection="paragraphs-of-the-second-edition", node_tag="WEST", max=MAX_NUMBER
    )
    ServerPrefix.objects.create(node_tag="Z", prefix="NorthServer/")
    next_gapless_numbers("letters", 41)
    source = hibernate.HiLo(9, "hibernate_unique_key", "next_hi")
    settings.HILO = {**settings.HILO, "SOURCES": {"claims": source}}


def assert_fits(page: Page) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"], page.url
    # Django's lists scroll on a phone; the shop's show every value.
    tables = ".results, .wide" if page.viewport_size["width"] >= 1280 else ".wide"
    cut = "nodes => nodes.map(n => n.scrollWidth - n.clientWidth)"
    assert not any(page.eval_on_selector_all(tables, cut)), page.url


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_each_page_fits(shop, open_as, superuser, tmp_path, complaints, width, scheme):
    folder = Path(os.environ.get("HILO_LOOKS") or tmp_path)
    page = open_as(superuser, "/admin/", scheme)
    page.set_viewport_size({"width": width, "height": 900})

    def look(name: str) -> None:
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        if not name.startswith("rest-"):
            assert_fits(page)

    for name, url in PAGES.items():
        page.goto(url)
        look(name)
    for name, collection, number in [
        ("counter-raise", "orders", 5_000_000_000),
        ("counter-raise-near-the-end", "orders", MAX_NUMBER - 1),
        ("counter-refused", "orders", 100),
        ("counter-lower", "tickets", 100),
    ]:
        page.goto(f"{COUNTERS}{collection}_2FA/change/")
        page.locator("input[name=max]").fill(str(number))
        page.get_by_role("button", name="Save", exact=True).click()
        look(name)
    page.goto(COUNTERS)
    for collection in ("orders", "tickets"):
        page.locator(f".action-select[value='{collection}/A']").check()
    page.locator("select[name=action]").select_option("reserve_block")
    page.locator(".actions button[type=submit]").click()
    look("counter-block")
    page.locator("input[name=size]").fill("0")
    page.get_by_role("button", name="Reserve").click()
    page.locator("input[name=size]").fill("1000")
    page.get_by_role("button", name="Reserve").click()
    look("counter-block-reserved")
    complaints.clear()  # of 405: addresses that are only for POST
