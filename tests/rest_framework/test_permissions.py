"""Who may do what over REST, as one table."""

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission, User
from rest_framework.authentication import BasicAuthentication
from rest_framework.test import APIClient

from django_hilo.counters import reserve
from django_hilo.rest_framework import views

pytestmark = pytest.mark.django_db

REQUESTS = {
    "documents": ("get", "/hilo/documents/", None),
    "document": ("get", "/hilo/documents/orders/A/", None),
    "raise": ("patch", "/hilo/documents/orders/A/", {"max": 500}),
    "next-id": ("post", "/hilo/collections/orders/next-id/", {"count": 1}),
    "ranges": ("post", "/hilo/collections/orders/ranges/", {"size": 10}),
    "return": (
        "post",
        "/hilo/collections/orders/ranges/return/",
        {"high": 10, "last": 5, "ticket": "forged"},
    ),
    "prefixes": ("get", "/hilo/prefixes/", None),
    "prefix": ("put", "/hilo/prefixes/A/", {"prefix": "N/"}),
    "gapless": ("post", "/hilo/gapless/orders/next/", {}),
}

# A return with a forged ticket is refused with 409 to those who may return.
MATRIX = """
who                     documents document raise next-id ranges return prefixes prefix gapless
anonymous               403       403      403   403     403    403    403      403    403
user                    403       403      403   403     403    403    403      403    403
staff                   403       403      403   403     403    403    403      403    403
view_hilodocument       200       200      403   403     403    403    403      403    403
change_hilodocument     403       403      200   403     403    403    403      403    403
add_hilodocument        403       403      403   403     403    403    403      403    403
delete_hilodocument     403       403      403   403     403    403    403      403    403
take_hilo_ids           403       403      403   201     201    409    403      403    201
view_serverprefix       403       403      403   403     403    403    200      403    403
change_serverprefix     403       403      403   403     403    403    403      200    403
add_serverprefix        403       403      403   403     403    403    403      403    403
superuser               200       200      200   201     201    409    200      200    201
inactive-superuser      403       403      403   403     403    403    403      403    403
"""  # noqa: E501

HEADER, *ROWS = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = [
    (row[0], endpoint, int(status))
    for row in ROWS
    for endpoint, status in zip(HEADER[1:], row[1:], strict=True)
]


def ask(client: APIClient, endpoint: str):
    reserve("orders", 32)
    method, address, body = REQUESTS[endpoint]
    return getattr(client, method)(address, body, format="json")


def client_of(who: str) -> APIClient:
    client = APIClient()
    if who == "anonymous":
        return client
    user = User.objects.create(
        username=who,
        is_superuser=who.endswith("superuser"),
        is_active=not who.startswith("inactive"),
        is_staff=who not in ("user", "inactive-superuser"),
    )
    if who not in ("user", "staff") and not user.is_superuser:
        user.user_permissions.add(
            Permission.objects.get(codename=who, content_type__app_label="django_hilo")
        )
    client.force_authenticate(user)
    return client


@pytest.mark.parametrize(("who", "endpoint", "status"), CELLS)
def test_matrix(who, endpoint, status):
    answer = ask(client_of(who), endpoint)
    assert answer.status_code == status, answer.data
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("endpoint", REQUESTS)
@pytest.mark.parametrize("stand_in", ["AnonymousUser", None])
def test_anonymous_callers_whatever_the_defaults_say(
    endpoint, stand_in, settings, monkeypatch
):
    """401 where the first authentication class knows how to ask, as DRF has it."""
    settings.REST_FRAMEWORK = {
        **django_settings.REST_FRAMEWORK,
        "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
        **({} if stand_in else {"UNAUTHENTICATED_USER": None}),
    }
    answer = ask(APIClient(), endpoint)
    assert answer.status_code == 403
    monkeypatch.setattr(views.HiLoView, "authentication_classes", [BasicAuthentication])
    answer = ask(APIClient(), endpoint)
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("endpoint", REQUESTS)
def test_no_authentication_class_at_all(endpoint, monkeypatch):
    monkeypatch.setattr(views.HiLoView, "authentication_classes", [])
    assert ask(APIClient(), endpoint).status_code == 403


def test_options_and_head_need_a_permission_of_the_endpoint():
    reserve("orders", 32)
    address = "/hilo/documents/orders/A/"
    stranger, viewer, changer = map(
        client_of, ["take_hilo_ids", "view_hilodocument", "change_hilodocument"]
    )
    assert stranger.options(address).status_code == 403
    assert viewer.options(address).status_code == 200
    assert changer.options(address).status_code == 200
    assert stranger.head(address).status_code == 403
    assert changer.head(address).status_code == 403
    assert viewer.head(address).status_code == 200
    assert viewer.delete(address).status_code == 405
