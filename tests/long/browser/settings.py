"""The tests' settings, with the shop's models, static files and a strict CSP."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, MIDDLEWARE, SPECTACULAR_SETTINGS

INSTALLED_APPS = [
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "drf_spectacular_sidecar",
    *[app for app in INSTALLED_APPS if app != "tests.apps.records"],
    "example_project.shop",
]
MIDDLEWARE = [
    *MIDDLEWARE,
    "django.middleware.csrf.CsrfViewMiddleware",
    "tests.long.browser.policy.strict",
]
ROOT_URLCONF = "example_project.urls"
STATIC_URL = "static/"
TIME_ZONE = "UTC"
SPECTACULAR_SETTINGS = {
    **SPECTACULAR_SETTINGS,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
