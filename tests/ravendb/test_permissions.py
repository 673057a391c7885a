"""Who may do what over RavenDB's protocol, as one table."""

from base64 import b64encode
from hashlib import sha256

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from django_hilo.counters import seed_gapless_number
from django_hilo.models import GaplessCounter, HiLoDocument

pytestmark = pytest.mark.django_db

REQUESTS = {
    "next": ("get", "databases/shop/hilo/next?tag=orders"),
    "return": ("put", "databases/shop/hilo/return?tag=orders&end=32&last=5"),
    "identity": ("post", "databases/shop/identity/next?name=orders"),
    "seed": ("post", "databases/shop/identity/seed?name=orders&value=7"),
    "list": ("get", "databases/shop/debug/identities"),
    "topology": ("get", "topology?name=shop"),
}
# A user's client needs no topology: 404, as it stays with its URL. The last three lines
# are a user who is logged in by a session, one who is not active, and a wrong password.
MATRIX = """
who                   next return identity seed list topology
nobody                401  401    401      401  401  401
token                 201  204    200      403  403  200
wrong-token           401  401    401      401  401  401
user                  403  403    403      403  403  403
take_hilo_ids         201  204    200      403  403  404
change_gaplesscounter 403  403    403      200  403  403
view_gaplesscounter   403  403    403      403  200  403
view_hilodocument     403  403    403      403  403  403
superuser             201  204    200      200  200  404
session               401  401    401      401  401  401
inactive              401  401    401      401  401  401
wrong-password        401  401    401      401  401  401
"""
HEADER, *ROWS = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = [
    (row[0], endpoint, int(status))
    for row in ROWS
    for endpoint, status in zip(HEADER[1:], row[1:], strict=True)
]


@pytest.fixture(autouse=True)
def site(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"shop": "default"},
        "RAVENDB_TOKENS": [sha256(b"token").hexdigest()],
    }


def ask(who: str, endpoint: str):
    method, path = REQUESTS[endpoint]
    client, headers, prefix = Client(enforce_csrf_checks=True), {}, "/raven/"
    if who.endswith("token"):
        prefix += f"{who}/"
    elif who != "nobody":
        user = User.objects.create_user(
            "robot",
            password="secret",
            is_staff=True,
            is_active=who != "inactive",
            is_superuser=who in ("superuser", "session", "inactive", "wrong-password"),
        )
        if "_" in who:
            user.user_permissions.add(Permission.objects.get(codename=who))
        if who == "session":
            client.force_login(user)
        else:
            password = "wrong" if who == "wrong-password" else "secret"
            credentials = b64encode(f"robot:{password}".encode()).decode()
            headers = {"authorization": f"Basic {credentials}"}
    return getattr(client, method)(prefix + path, headers=headers)


@pytest.mark.parametrize(("who", "endpoint", "status"), CELLS)
def test_matrix(who, endpoint, status):
    seed_gapless_number("orders", 3)
    answer = ask(who, endpoint)
    assert answer.status_code == status, answer.content
    assert "no-store" in answer["Cache-Control"]
    if status in (401, 403):
        assert not HiLoDocument.objects.exists()
        assert GaplessCounter.objects.get().last == 3
