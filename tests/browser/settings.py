"""The tests' settings, with the shop's models, static files and a strict CSP."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = [
    "django.contrib.staticfiles",
    *[app for app in INSTALLED_APPS if app != "tests.records"],
    "example_project.shop",
]
MIDDLEWARE = [
    *MIDDLEWARE,
    "django.middleware.csrf.CsrfViewMiddleware",
    "tests.browser.policy.strict",
]
STATIC_URL = "static/"
TIME_ZONE = "UTC"
