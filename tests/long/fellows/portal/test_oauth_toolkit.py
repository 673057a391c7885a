"""Programs of members get tokens, which belong to the members."""

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.urls import reverse
from oauth2_provider.models import AccessToken, RefreshToken

from tests.long.fellows.portal.people.models import Client, Member

pytestmark = pytest.mark.django_db

TEXT = settings.HILO_TEST_KEYS == "text"
VERIFIER = "v" * 60
HASH = hashlib.sha256(VERIFIER.encode()).digest()
CHALLENGE = base64.urlsafe_b64encode(HASH).decode().rstrip("=")
BACK = "https://program.example.org/back"


@pytest.fixture
def member():
    return Member.objects.create_user("ann", "ann@example.org", "secret")


@pytest.fixture
def program(member):
    return Client.objects.create(
        name="program",
        user=member,
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        redirect_uris=BACK,
    )


def test_a_member_lets_a_program_in(client, member, program):
    assert program.pk == ("clients/1-A" if TEXT else 1)
    client.force_login(member)
    asked = {
        "client_id": program.client_id,
        "response_type": "code",
        "redirect_uri": BACK,
        "scope": "read",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    assert client.get("/o/authorize/", asked).status_code == 200
    answer = client.post("/o/authorize/", asked | {"allow": "Authorize"})
    [code] = parse_qs(urlsplit(answer.url).query)["code"]
    exchange = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": BACK,
        "client_id": program.client_id,
        "code_verifier": VERIFIER,
    }
    tokens = client.post("/o/token/", exchange).json()
    token = AccessToken.objects.get(token=tokens["access_token"])
    assert (token.user, token.application) == (member, program)
    renewed = client.post(
        "/o/token/",
        {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refresh_token"],
            "client_id": program.client_id,
        },
    ).json()
    assert AccessToken.objects.get(token=renewed["access_token"]).user == member
    data = {"token": renewed["access_token"], "client_id": program.client_id}
    assert client.post("/o/revoke_token/", data).status_code == 200
    assert not AccessToken.objects.exists()
    member.delete()
    assert not RefreshToken.objects.exists() and not Client.objects.exists()


def test_the_pages_of_programs(client, member, program):
    client.force_login(member)
    assert "program" in client.get("/o/applications/").content.decode()
    detail = reverse("oauth2_provider:detail", args=[program.pk])
    assert program.client_id in client.get(detail).content.decode()
    update = client.get(reverse("oauth2_provider:update", args=[program.pk]))
    form = {k: v for k, v in update.context["form"].initial.items() if v is not None}
    saved = client.post(update.request["PATH_INFO"], form | {"name": "renamed"})
    assert (saved.status_code, saved.url) == (302, detail)
    client.post(reverse("oauth2_provider:delete", args=[program.pk]))
    assert not Client.objects.exists()
