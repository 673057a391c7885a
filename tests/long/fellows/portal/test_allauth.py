"""Members sign up, confirm their address, log in and reset their password."""

import re
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.long.fellows.portal.people.models import Member

pytestmark = pytest.mark.django_db

PASSWORD, NEW = "a long password", "another long password"
FIRST = {"text": "members/1-A", "integer": 1}[settings.HILO_TEST_KEYS]


def link_of(mail) -> str:
    [url] = re.findall(r"http://testserver\S+", mail.body)
    return urlsplit(url).path


def sign_up(client) -> Member:
    data = {"username": "ann", "email": "ann@example.org", "password1": PASSWORD}
    assert client.post("/accounts/signup/", data).status_code == 302
    return Member.objects.get()


def log_in(client, password: str):
    data = {"login": "ann@example.org", "password": password}
    return client.post("/accounts/login/", data)


def test_a_member_signs_up_and_logs_in(client, mailoutbox):
    member = sign_up(client)
    assert member.pk == FIRST
    assert client.get("/accounts/email/").status_code == 302  # not confirmed yet
    confirm = link_of(mailoutbox[0])
    assert client.post(confirm).status_code == 302
    client.logout()
    log_in(client, PASSWORD)
    assert client.session["_auth_user_id"] == str(FIRST)
    assert "ann@example.org" in client.get("/accounts/email/").content.decode()


def test_a_forgotten_password(client, mailoutbox):
    member = sign_up(client)
    member.emailaddress_set.update(verified=True)
    client.logout()
    client.post("/accounts/password/reset/", {"email": "ann@example.org"})
    link = link_of(mailoutbox[-1])
    form = client.get(link, follow=True)
    [(where, _)] = form.redirect_chain
    client.post(where, {"password1": NEW, "password2": NEW})
    client.logout()
    log_in(client, NEW)
    assert client.session["_auth_user_id"] == str(member.pk)
