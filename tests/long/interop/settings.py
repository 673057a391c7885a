"""The tests' settings as a site that RavenDB's clients draw from."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import HILO as _HILO
from tests.settings import MIDDLEWARE as _MIDDLEWARE

ALLOWED_HOSTS = ["127.0.0.1"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    *_MIDDLEWARE,
]
HILO = {
    **_HILO,
    "MAX_CAPACITY": 64,  # small, so that there are many reservations
    "RAVENDB_DATABASES": {"shop": "default"},
    "RAVENDB_TOKENS": os.environ.get("HILO_TEST_DIGESTS", "").split(),
}
