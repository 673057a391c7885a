"""The same admin under another name, and mixed with Unfold."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client, modify_settings
from django.urls import path

from django_hilo.admin import HiLoDocumentAdmin, ServerPrefixAdmin
from django_hilo.counters import read_max, reserve
from django_hilo.models import HiLoDocument, ServerPrefix
from tests.admin.test_counters import confirmed, hidden_of, text_of
from tests.long.browser.with_unfold.sites import unfold_site

office = admin.AdminSite(name="office")
office.register(HiLoDocument, HiLoDocumentAdmin)
office.register(ServerPrefix, ServerPrefixAdmin)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("office/", office.urls),
    path("unfold/", unfold_site.urls),
]


@pytest.mark.urls(__name__)
@pytest.mark.django_db(databases=["default", "other"])
def test_every_link_stays_in_its_own_site(admin_client):
    reserve("orders", 32)
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    counters, prefixes = (
        f"/office/django_hilo/{name}/" for name in ("hilodocument", "serverprefix")
    )
    selected = {"_selected_action": "orders/A", "action": "reserve_block"}
    lower = {"max": 20, "initial-max": 32}
    pages = [
        admin_client.get(counters),
        admin_client.get(counters + "add/"),
        admin_client.get(counters + "orders_2FA/change/?highest=1"),
        admin_client.get(counters + "orders_2FA/history/"),
        admin_client.get(counters + "orders_2FA/delete/"),
        admin_client.post(counters + "orders_2FA/change/", lower),
        admin_client.post(counters, selected),
        admin_client.get(prefixes),
        admin_client.get(prefixes + "A/change/"),
        admin_client.get(prefixes + "A/delete/"),
    ]
    offers_another = [b"_addanother" in page.content for page in pages]
    assert offers_another == [False, True, *[False] * (len(pages) - 2)]
    for page in pages:
        assert page.status_code == 200
        assert 'href="/office/' in page.content.decode()
        assert "/admin/django_hilo" not in page.content.decode()
    for url, data in [
        (counters + "?database=nowhere", None),
        (counters, selected | {"size": 5}),
        (counters + "orders_2FA/delete/", {"confirmed": "on", "state": "x"}),
        (counters + "orders_2FA/change/", {"max": 90, "initial-max": 37}),
        (prefixes + "A/delete/", {"post": "yes"}),
    ]:
        send = admin_client.get if data is None else admin_client.post
        answer = send(url, data)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/office/")
    assert read_max("orders") == 90


@pytest.fixture
def unfold(admin_client: Client, settings: Any) -> Iterator[Any]:
    """Send requests to the pages of Unfold's site, with Unfold's templates."""
    settings.STATIC_URL = "static/"

    def send(method: str, url: str, data: Any = None) -> Any:
        page = getattr(admin_client, method)(url, data, follow=True)
        assert page.status_code == 200
        return page

    with modify_settings(
        INSTALLED_APPS={
            "prepend": "unfold.apps.BasicAppConfig",
            "append": "django.contrib.staticfiles",
        }
    ):
        yield send


# Unfold 0.110 is not quite ready for Django 6.1.
@pytest.mark.filterwarnings("ignore:Overriding get_action_choices")
@pytest.mark.urls(__name__)
@pytest.mark.django_db(databases=["default", "other"])
def test_every_page_works_in_unfold(unfold):
    reserve("orders", 32)
    reserve("orders", 10, using="other")
    counters = "/unfold/django_hilo/hilodocument/"
    orders = counters + "orders_2FA/"
    selected = {"_selected_action": "orders/A", "action": "reserve_block"}

    asked = unfold("post", counters, selected)
    assert 'name="size"' in asked.content.decode()
    assert "border-base-200" in field("size", asked)  # Unfold's own widget
    assert "the block 33 to 42 is yours" in text_of(
        unfold("post", counters, selected | {"size": "10"})
    )
    assert "orders_2FA/change/" in unfold("get", counters).content.decode()
    assert (
        "other_3Aorders_2FB/change/"
        in unfold("get", counters + "?database=other").content.decode()
    )

    added = {"database": "other", "collection": "new", "node_tag": "B", "max": 5}
    assert "border-base-200" in field("collection", unfold("get", counters + "add/"))
    assert "added successfully" in text_of(unfold("post", counters + "add/", added))

    page = unfold("get", orders + "change/?highest=1")
    assert "_addanother" not in page.content.decode()
    assert hidden_of(page)["initial-max"] == "42"
    assert "records.Order (default)" in text_of(page)
    unfold("post", orders + "change/", {"max": 50, "initial-max": 42})
    assert read_max("orders") == 50
    page = unfold("get", orders + "change/")
    page = unfold("post", orders + "change/", hidden_of(page) | {"max": 20})
    assert "The ids orders/21-A to orders/50-A could be given a second" in text_of(page)
    assert 'type="checkbox"' in field("confirmed", page)
    unfold("post", orders + "change/", confirmed(page, 20))
    assert read_max("orders") == 20
    assert "Lowered Max from 50 to 20" in text_of(unfold("get", orders + "history/"))

    page = unfold("get", orders + "delete/")
    assert "orders/1-A to orders/20-A could be given a second time" in text_of(page)
    unfold("post", orders + "delete/", hidden_of(page) | {"confirmed": "on"})
    assert not HiLoDocument.objects.exists()

    prefixes = "/unfold/django_hilo/serverprefix/"
    unfold(
        "post",
        prefixes + "add/",
        {"database": "other", "node_tag": "B", "prefix": "N/"},
    )
    page = unfold("get", prefixes + "other_3AB/change/")
    assert "orders/N/33-B" in text_of(page)
    assert "Ids of these nodes" in text_of(
        unfold("get", prefixes + "other_3AB/delete/")
    )


def field(name: str, page: Any) -> str:
    """The HTML of an input."""
    body = page.content.decode()
    end = body.index(f'name="{name}"')
    return body[body.rindex("<", 0, end) : body.index(">", end)]
