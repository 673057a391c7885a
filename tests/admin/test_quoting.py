"""Ids in the URLs of Django's admin, which quotes keys in a way of its own."""

import re
from urllib.parse import unquote as unquote_url

import pytest
from django.contrib.admin.utils import quote, unquote
from django.urls import resolve, reverse
from hypothesis import example, given

from django_hilo.identifiers import SEPARATORS, parse
from tests.apps.records.models import Order
from tests.test_identifiers import document_ids

# No URL, and no database, takes half a character.
ids = document_ids.map(str).filter(lambda text: not re.search("[\ud800-\udfff]", text))


@given(ids)
@example("orders/33-A")
@example("orders/4/33-A")
@example("orders_2F33/_24-A_/1")
@example("orders/../1")
@example("invoices/7-A$orders/33-A")
@example("x/1$/change/")
@example("x/1$/add/$/history/")
@example("x/1$ _\n\r\t?#%2F;_0A\\'\"<>")
def test_quoting_leads_back(text):
    quoted = quote(text)

    assert unquote(quoted) == text
    assert "/" not in quoted
    for page in ("change", "delete", "history"):
        url = reverse(f"admin:records_order_{page}", args=[quoted])
        match = resolve(unquote_url(url))
        assert match.view_name == f"admin:records_order_{page}"
        assert unquote(match.kwargs["object_id"]) == text


SAVED = [
    *(f"orders{sign}33-A" for sign in sorted(SEPARATORS)),
    "orders/North_2F/4/33-A",
    "orders/../1-A",
    "orders/Größe#?%2F/1-A",
    "orders/7-A$customers/33-A",
    "orders/1$_24 \t?#%25&+;=äé…😀\"<>'",
    "orders/1$/change/",
    "orders/1$/add/",
    "orders/1\u2044" + "1",
]


@pytest.mark.django_db
class TestPages:
    @pytest.mark.parametrize("text", SAVED)
    def test_are_those_of_the_object(self, admin_client, text):
        parse(text)
        Order(id=text, name="the one").save()
        Order(id="orders/999-A", name="another").save()
        args = [quote(text)]

        page = admin_client.get(reverse("admin:records_order_change", args=args))
        assert page.context["original"].pk == text
        for name in ("delete", "history"):
            url = reverse(f"admin:records_order_{name}", args=args)
            assert admin_client.get(url).context["object"].pk == text
        bare = reverse("admin:records_order_change", args=args).removesuffix("change/")
        assert admin_client.get(bare, follow=True).context["original"].pk == text

    def test_an_object_that_is_not_there(self, admin_client):
        for text in ("orders/1-A", "nothing"):
            url = reverse("admin:records_order_change", args=[quote(text)])
            assert admin_client.get(url).status_code == 302
