"""Tickets are shown to those who reserved, and to nobody else.

Tokens of RavenDB's clients: tests/ravendb/test_access.py.
"""

import logging

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.test import Client
from django.utils.log import AdminEmailHandler
from rest_framework.test import APIClient

from django_hilo._operations import edit_counter, lending
from django_hilo.counters import reserve, return_range
from django_hilo.exceptions import RangeNotReturned
from django_hilo.models import HiLoDocument
from tests.rest_framework.test_endpoints import boss  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db(databases=["default", "other"])

LIST = "/admin/django_hilo/hilodocument/"
CHANGE = LIST + "orders_2FA/change/"
RETURN = "/hilo/collections/orders/ranges/return/"


@pytest.fixture
def ticket() -> str:
    return reserve("orders", 32).ticket


def test_not_in_what_programs_print(ticket):
    reservation = reserve("orders", 32)
    row = HiLoDocument.objects.get()
    assert reservation.ticket == row.ticket
    for text in (repr(reservation), str(reservation), repr(row), str(row)):
        assert row.ticket not in text


def test_not_in_what_a_refusal_says(ticket):
    reserve("orders", 32)
    with pytest.raises(RangeNotReturned) as refusal:
        return_range("orders", 32, 5, ticket)
    assert ticket not in str(refusal.value)


def test_not_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    reservation = reserve("orders", 32)
    return_range("orders", 32, 5, reservation.ticket)
    assert caplog.records
    assert reservation.ticket not in caplog.text
    assert HiLoDocument.objects.get().ticket not in caplog.text


class TestAdmin:
    def test_not_on_its_pages_nor_in_its_history(self, admin_client, ticket):
        block = {"action": "reserve_block", "_selected_action": "orders/A", "size": "8"}
        lower = {"max": "3", "initial-max": "40", "confirmed": "3"}
        pages, tickets = [], {ticket}
        for method, url, data in [
            ("get", LIST, {}),
            ("get", CHANGE, {"highest": "1"}),
            ("post", LIST, block),
            ("post", CHANGE, lower),
            ("get", LIST + "orders_2FA/delete/", {}),
            ("get", LIST + "orders_2FA/history/", {}),
        ]:
            tickets |= {row.ticket for row in HiLoDocument.objects.all()}
            answer = getattr(admin_client, method)(url, data, follow=True)
            tickets |= {row.ticket for row in HiLoDocument.objects.all()}
            pages.append(answer.content.decode())
        assert len(tickets) > 1
        told = "".join(pages) + "".join(
            f"{entry.object_repr}{entry.change_message}"
            for entry in LogEntry.objects.all()
        )
        assert LogEntry.objects.exists()
        assert not any(each in told for each in tickets)

    @pytest.mark.parametrize("lookup", ["ticket", "ticket__startswith", "ticket__gt"])
    def test_not_letter_by_letter(self, ticket, lookup):
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(
            Permission.objects.get(codename="view_hilodocument")
        )
        client = Client()
        client.force_login(viewer)
        assert client.get(LIST, {"max__gt": "0"}).status_code == 200
        for guess in (ticket[:1], "~"):
            assert client.get(LIST, {lookup: guess}).status_code == 400

    def test_its_confirmation_shows_a_mark_of_it_only(self, admin_client, ticket):
        state = edit_counter.state_of(HiLoDocument.objects.get())
        page = admin_client.get(LIST + "orders_2FA/delete/").content.decode()
        assert state in page
        assert ticket not in page and ticket not in state


class TestRest:
    @pytest.fixture
    def client(self, boss) -> APIClient:  # noqa: F811 - the fixture of that name
        client = APIClient(raise_request_exception=False)
        client.force_authenticate(boss)
        return client

    def test_only_who_reserves_is_told(self, client, ticket):
        lent = client.post(
            "/hilo/collections/orders/ranges/", {"size": 5}, format="json"
        )
        assert lent.json()["ticket"] == HiLoDocument.objects.get().ticket
        for url in ("/hilo/documents/", "/hilo/documents/orders/A/"):
            text = client.get(url).content.decode()
            assert lent.json()["ticket"] not in text
        found = client.get("/hilo/documents/", {"search": lent.json()["ticket"]})
        assert found.json()["count"] == 0
        assert client.get("/hilo/documents/?ordering=ticket").status_code == 400

    @pytest.mark.parametrize("form", ["json", "multipart"])
    def test_not_in_the_mail_of_an_error(
        self, client, ticket, settings, monkeypatch, form
    ):
        settings.ADMINS = [("a", "admin@example.com")]

        def fail(*arguments, **named):
            own = named.get("ticket") or arguments
            raise RuntimeError(f"unlucky {len(own)}")

        monkeypatch.setattr(lending, "take_back", fail)
        handler = AdminEmailHandler(include_html=True)
        logger = logging.getLogger("django.request")
        logger.addHandler(handler)
        try:
            sent = {"high": 32, "last": 5, "ticket": ticket}
            assert client.post(RETURN, sent, format=form).status_code == 500
        finally:
            logger.removeHandler(handler)
        # Django's own handler mails it as well, without the variables.
        told = [
            m.body + "".join(a.content for a in m.alternatives) for m in mail.outbox
        ]
        assert any("unlucky" in text and "take_back" in text for text in told)
        assert not any(ticket in text for text in told)
