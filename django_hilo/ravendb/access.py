"""Access for a user with the permission, by HTTP Basic, or for a token in the path.

A token allows taking ids; the requests of administrators need a user. A session's
cookie does not count: these requests write without a CSRF token.
"""

import binascii
from base64 import b64decode
from hashlib import sha256
from secrets import compare_digest
from typing import Any

from django.apps import apps
from django.http import HttpRequest

from django_hilo.conf import settings
from django_hilo.ravendb.protocol import Refusal

TAKE_IDS = "django_hilo.take_hilo_ids"
SEED = "django_hilo.change_gaplesscounter"
VIEW_IDENTITIES = "django_hilo.view_gaplesscounter"

_TYPE = "Raven.Client.Exceptions.Security.AuthorizationException"
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="django-hilo", charset="UTF-8"'}


def check_access(request: HttpRequest, token: str | None, permission: str) -> str:
    """Return the mark of the caller, a digest of the token or of the user.

    Raises `Refusal` unless the request has a permission: 401 for nobody, else 403. A
    user becomes ``request.user``.
    """
    if token is not None:
        if not is_accepted(token):
            raise _nobody("The token in the URL is not accepted by this server.")
        if permission != TAKE_IDS:
            raise Refusal(
                403,
                _TYPE,
                f"A token only permits taking ids: use HTTP Basic with a user who has "
                f"{permission!r}.",
            )
        return _mark("token", token)
    credentials = read_basic(request.META.get("HTTP_AUTHORIZATION", ""))
    if credentials is None or not apps.is_installed("django.contrib.auth"):
        raise _nobody(
            "Send a user name with HTTP Basic, or put a token into the URL before "
            "'databases' (HILO['RAVENDB_TOKENS'])."
        )
    request.user = _user(request, *credentials, permission)
    return _mark("user", request.user.pk)


def _mark(kind: str, caller: object) -> str:
    # The protocol has no ticket: the mark shows whose a range is that comes back.
    digest = sha256(f"{kind} {caller}".encode(errors="replace")).hexdigest()
    return f"ravendb-{digest[:8]}"


def is_accepted(token: str) -> bool:
    """Return whether a digest in the settings is the token's, in constant time."""
    mine = sha256(token.encode(errors="replace")).hexdigest().encode()
    found = False
    for digest in settings.RAVENDB_TOKENS:
        found |= compare_digest(digest.encode(), mine)
    return found


def read_basic(header: str) -> tuple[str, str] | None:
    """Return user name and password of an Authorization header, if it has them."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, colon, password = text.partition(":")
    # PostgreSQL takes no NUL in a text.
    return (name, password) if colon and "\0" not in text else None


def _user(request: HttpRequest, name: str, password: str, permission: str) -> Any:
    from django.contrib.auth import authenticate, get_user_model

    key = get_user_model().USERNAME_FIELD
    user = authenticate(request, **{key: name}, password=password)
    if user is None or not user.is_active:
        raise _nobody("No active user has this name and password.")
    if not user.has_perm(permission):
        raise Refusal(
            403, _TYPE, f"The user {user.get_username()!r} needs {permission!r}."
        )
    return user


def _nobody(message: str) -> Refusal:
    return Refusal(401, _TYPE, message, **_CHALLENGE)
