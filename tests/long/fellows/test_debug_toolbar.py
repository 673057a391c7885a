import html
import re

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from django.urls import include, path

from django_hilo._allocation import memory
from django_hilo.models import HiLoDocument
from tests.long.fellows.market.models import Order

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]


def page_that_creates(request):
    Order.objects.create(name="tea")
    return HttpResponse("<html><body>ok</body></html>")


urlpatterns = [
    path("order/", page_that_creates),
    path("order/atomic/", transaction.atomic(page_that_creates)),
    path("__debug__/", include("debug_toolbar.urls")),
]


@pytest.fixture
def shown(client, settings):
    """Ask for a page; return the statements that the panel SQL shows for it."""
    settings.DEBUG = True

    def ask(url):
        request_id = client.get(url).headers["djdt-request-id"]
        query = {"request_id": request_id, "panel_id": "SQLPanel"}
        panel = client.get("/__debug__/render_panel/", query).json()["content"]
        found = re.findall(r'class="djDebugSql">(.*?)</div>', panel, re.DOTALL)
        return [html.unescape(re.sub(r"<[^>]*>", "", each)).strip() for each in found]

    return ask


@pytest.mark.parametrize(
    ("url", "on_its_connection"),
    [("/order/", {"sqlite", "postgresql"}), ("/order/atomic/", {"sqlite"})],
)
def test_a_reservation_on_the_page_s_connection_shows(shown, url, on_its_connection):
    shown(url)
    highest = HiLoDocument.objects.get().max
    memory.after_fork_in_child()  # as another process, which knows no range
    statements = shown(url)
    assert HiLoDocument.objects.get().max > highest
    on_counter = [each for each in statements if "django_hilo_hilodocument" in each]
    assert bool(on_counter) == (connection.vendor in on_its_connection)
    assert len([each for each in statements if each.startswith("INSERT")]) == 1
