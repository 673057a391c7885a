"""Who may draw ids over RavenDB's protocol, and what of a token is ever written."""

import logging
from base64 import b64encode
from hashlib import sha256
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.db import OperationalError
from django.views.decorators.debug import sensitive_variables

from django_hilo.exceptions import ConcurrencyError, ReservationTimeout
from django_hilo.models import HiLoDocument
from django_hilo.ravendb import access, hilo_views

BUSY = "The database is busy or unavailable; try again."
BROKEN = "The request failed; see the server's log for the reason."
pytestmark = pytest.mark.django_db

TOKEN = "open-sesame-7731"
OLD_TOKEN = "the one before"
URL = "/raven/databases/shop/hilo/next?tag=orders"
TOKEN_URL = f"/raven/{TOKEN}/databases/shop/hilo/next?tag=orders"


def digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


@pytest.fixture(autouse=True)
def site(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"shop": "default"},
        "RAVENDB_TOKENS": [digest(OLD_TOKEN), digest(TOKEN)],
    }


def basic(credentials: str | bytes, scheme: str = "Basic") -> dict[str, str]:
    raw = credentials.encode() if isinstance(credentials, str) else credentials
    return {"authorization": f"{scheme} {b64encode(raw).decode()}"}


def a_user(name: str = "robot", password: str = "pa:ss", **more: Any) -> User:
    return User.objects.create_user(name, password=password, **more)


def allowed(user: User) -> User:
    user.user_permissions.add(Permission.objects.get(codename="take_hilo_ids"))
    return user


class TestToken:
    def test_each_listed_token_is_accepted(self, client):
        assert client.get(TOKEN_URL).status_code == 201
        other = TOKEN_URL.replace(TOKEN, "the%20one%20before")
        assert client.get(other).status_code == 201

    @pytest.mark.parametrize(
        "token",
        [
            "wrong",
            TOKEN[:-1],
            TOKEN + "%00",
            "%ff%fe",
            "\N{SNOWMAN}",
            digest(TOKEN),
            "x" * 4000,
        ],
    )
    def test_others_are_not(self, client, token):
        response = client.get(TOKEN_URL.replace(TOKEN, token))
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Basic ")
        assert not HiLoDocument.objects.exists()

    @pytest.mark.parametrize("missing", [[], ()])
    def test_without_digests_none_is(self, client, settings, missing):
        settings.HILO = {**settings.HILO, "RAVENDB_TOKENS": missing}
        assert client.get(TOKEN_URL).status_code == 401
        assert client.get("/raven//databases/shop/hilo/next").status_code == 404

    def test_each_digest_is_compared(self, monkeypatch):
        """Also after the right one: the time tells nothing."""
        compared = []

        def compare(one, other):
            compared.append(one)
            return one == other

        monkeypatch.setattr(access, "compare_digest", compare)
        assert access.is_accepted(OLD_TOKEN)
        assert compared == [digest(OLD_TOKEN).encode(), digest(TOKEN).encode()]

    def test_a_wrong_token_is_not_mended_by_a_user(self, client):
        allowed(a_user())
        url = TOKEN_URL.replace(TOKEN, "wrong")
        assert client.get(url, headers=basic("robot:pa:ss")).status_code == 401


class TestBasic:
    def test_a_user_with_the_permission(self, client):
        allowed(a_user())
        assert client.get(URL, headers=basic("robot:pa:ss")).status_code == 201
        lower = basic("robot:pa:ss", scheme="basic")
        assert client.get(URL, headers=lower).status_code == 201

    def test_names_and_passwords_are_utf8(self, client):
        allowed(a_user("Zoë", "Grüße"))
        assert client.get(URL, headers=basic("Zoë:Grüße")).status_code == 201

    def test_a_user_without_the_permission(self, client):
        a_user(is_staff=True)
        response = client.get(URL, headers=basic("robot:pa:ss"))
        assert response.status_code == 403
        assert "django_hilo.take_hilo_ids" in response.json()["Message"]
        assert not HiLoDocument.objects.exists()

    def test_an_inactive_user(self, client, settings):
        allowed(a_user(is_active=False))
        assert client.get(URL, headers=basic("robot:pa:ss")).status_code == 401
        # This backend lets inactive users log in.
        settings.AUTHENTICATION_BACKENDS = [
            "django.contrib.auth.backends.AllowAllUsersModelBackend"
        ]
        assert client.get(URL, headers=basic("robot:pa:ss")).status_code == 401

    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Basic",
            "Basic cm9ib3Q",
            "Basic " + b64encode(b"robot").decode(),
            "Basic " + b64encode(b"\xff\xfe:x").decode(),
            "Basic " + b64encode(b"robot:pa:ss\0").decode(),
            "Basic " + b64encode(b":").decode(),
            "Basic " + b64encode(b"robot:wrong").decode(),
            "Basic " + b64encode(b"nobody:pa:ss").decode(),
            "Basic " + b64encode(b"x" * 10_000 + b":y").decode(),
            "Basic \xe9\xff",
            "Bearer " + TOKEN,
        ],
    )
    def test_nobody(self, client, header):
        allowed(a_user())
        response = client.get(URL, headers={"authorization": header})
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == (
            'Basic realm="django-hilo", charset="UTF-8"'
        )
        assert response.json()["Type"].endswith("AuthorizationException")
        assert not HiLoDocument.objects.exists()

    def test_a_backend_that_denies(self, client, settings):
        settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Broken"]
        Broken.error = OperationalError("away")
        assert client.get(URL, headers=basic("robot:pa:ss")).status_code == 503

    def test_another_user_name_field(self, client, monkeypatch):
        allowed(a_user(email="robot@example.com"))
        monkeypatch.setattr(User, "USERNAME_FIELD", "email")
        headers = basic("robot@example.com:pa:ss")
        assert client.get(URL, headers=headers).status_code == 201

    def test_without_the_auth_app_only_tokens_work(self, client, monkeypatch):
        from django.apps import apps

        allowed(a_user())
        installed = apps.is_installed
        monkeypatch.setattr(
            apps, "is_installed", lambda app: "auth" not in app and installed(app)
        )
        assert client.get(URL, headers=basic("robot:pa:ss")).status_code == 401
        assert client.get(TOKEN_URL).status_code == 201


class Broken:
    """An authentication backend without luck."""

    error: Exception

    @sensitive_variables("password")
    def authenticate(self, request, username=None, password=None):
        raise self.error


@pytest.mark.parametrize(
    "headers", [{}, basic("robot:wrong"), basic("robot:pa:ss")], ids=["no", "bad", "ok"]
)
def test_databases_are_told_only_to_those_who_have_access(client, headers):
    """The same answer, whether the database exists or not."""
    a_user()
    here = client.get(URL, headers=headers)
    nowhere = client.get(URL.replace("shop", "nope"), headers=headers)
    assert here.status_code == nowhere.status_code in (401, 403)
    assert here.json()["Message"] == nowhere.json()["Message"]


PATHS = [
    "",
    "/",
    "/x",
    "/topology",
    "/topology/",
    "/topology?name=nope",
    "/databases/shop/hilo/next",
    "/databases/shop/hilo/next?tag=orders",
    "/databases/shop/hilo/next?tag=1",
    "/databases/nope/hilo/next?tag=orders",
    "/databases/shop/hilo/return?tag=orders&end=1&last=1",
    "/databases/shop/hilo/next/",
    "/databases/shop/identity/next?name=orders",
    "/databases/shop/identity/seed?name=orders&value=5",
    "/databases/shop/debug/identities",
    "/shop/hilo/next",
]


class TestNothingIsLogged:
    @pytest.fixture(autouse=True)
    def _all_ears(self, settings, caplog):
        settings.ADMINS = [("a", "admin@example.com")]
        settings.MANAGERS = settings.ADMINS
        settings.MIDDLEWARE = [
            "django.middleware.common.BrokenLinkEmailsMiddleware",
            "django.middleware.common.CommonMiddleware",
            *settings.MIDDLEWARE,
        ]
        caplog.set_level(logging.DEBUG)
        # Django's own loggers pass nothing on to the root, where caplog listens.
        loggers = [logging.getLogger(n) for n in ("django", "django.server")]
        for logger in loggers:
            logger.addHandler(caplog.handler)
        yield
        for logger in loggers:
            logger.removeHandler(caplog.handler)

    def check(self, caplog):
        told = [*(vars(record) for record in caplog.records)]
        assert TOKEN not in caplog.text
        assert not any("request" in record for record in told)
        sent = [str(message.message()) for message in mail.outbox]
        assert not any(TOKEN in text for text in sent), sent
        assert "sesame" not in caplog.text

    @pytest.mark.parametrize("rest", PATHS)
    @pytest.mark.parametrize("debug", [True, False])
    def test_of_any_path_and_method(self, client, settings, caplog, rest, debug):
        settings.DEBUG = debug
        for method in ("GET", "PUT", "POST", "HEAD", "OPTIONS"):
            response = client.generic(method, f"/raven/{TOKEN}{rest}")
            assert 200 <= response.status_code < 300 or response.status_code >= 400
        self.check(caplog)
        settings.HILO = {**settings.HILO, "RAVENDB_TOKENS": []}
        assert client.get(f"/raven/{TOKEN}{rest}").status_code in (401, 404, 405)
        self.check(caplog)

    @pytest.mark.parametrize(
        ("error", "status", "told"),
        [
            (ReservationTimeout("db.internal"), 503, BUSY),
            (ConcurrencyError("db.internal"), 503, BUSY),
            (OperationalError("password of db"), 503, BUSY),
            (
                RuntimeError("inner matters"),
                500,
                "The request failed; see the server's log for the reason.",
            ),
        ],
    )
    def test_of_errors(
        self, client, settings, monkeypatch, caplog, error, status, told
    ):
        """The mails to the administrators show each variable of each frame."""
        monkeypatch.setattr(hilo_views.lending, "lend", Mock(side_effect=error))
        mails = mails_with_variables()
        logging.getLogger("django_hilo").addHandler(mails)
        try:
            response = client.get(TOKEN_URL)
        finally:
            logging.getLogger("django_hilo").removeHandler(mails)

        assert response.status_code == status
        assert response.json()["Message"] == told
        assert caplog.text.count(str(error)) >= 1, "but the log has the cause"
        assert len(mail.outbox) == (status == 500)
        if status == 500:
            page = mail.outbox[0].alternatives[0].content
            assert "RuntimeError" in page
            assert "next_range" in page, "the traceback is there"
        self.check(caplog)

    def test_nor_are_passwords(self, client, settings, caplog):
        settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Broken"]
        Broken.error = RuntimeError("unlucky")
        mails = mails_with_variables()
        logging.getLogger("django_hilo").addHandler(mails)
        try:
            response = client.get(URL, headers=basic("robot:sesame"))
        finally:
            logging.getLogger("django_hilo").removeHandler(mails)
        assert response.status_code == 500
        page = mail.outbox[0].alternatives[0].content
        assert "unlucky" in page
        assert "sesame" not in page
        assert b64encode(b"robot:sesame").decode() not in page
        self.check(caplog)


def mails_with_variables() -> logging.Handler:
    from django.utils.log import AdminEmailHandler

    handler = AdminEmailHandler(include_html=True)
    handler.setLevel(logging.ERROR)
    return handler


def test_the_urls_pass_djangos_checks():
    from django.core.checks import run_checks

    assert django_settings.ROOT_URLCONF == "tests.urls"
    assert not [found for found in run_checks(tags=["urls"]) if "raven" in str(found)]
