"""Settings of the example project.

Environment: ``EXAMPLE_DATABASE_URL`` (default: ``example.sqlite3`` in the project's
folder), ``EXAMPLE_SECRET_KEY`` (default: a new one at each start, which ends sessions),
``EXAMPLE_DEBUG=1`` (also needed for stylesheets under ``manage.py runserver``).
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key

from example_project.databases import from_url, sqlite

PROJECT = Path(__file__).resolve().parent.parent

DEBUG = os.environ.get("EXAMPLE_DEBUG") == "1"
SECRET_KEY = os.environ.get("EXAMPLE_SECRET_KEY") or get_random_secret_key()
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_hilo",
    "example_project.shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"

_url = os.environ.get("EXAMPLE_DATABASE_URL")
DATABASES = {"default": from_url(_url) if _url else sqlite(PROJECT / "example.sqlite3")}
# Models that declare no key of their own: integers, known before the insert.
DEFAULT_AUTO_FIELD = "django_hilo.fields.HiLoBigAutoField"

HILO = {
    "NODE_TAG": "A",
    # RavenDB's clients ask for the database "shop" at /raven/.
    "RAVENDB_DATABASES": {"shop": "default"},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    # Who is logged in may read, who has the model's permission may write.
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.DjangoModelPermissions"],
    "DEFAULT_FILTER_BACKENDS": [
        "rest_framework.filters.SearchFilter",
        "rest_framework.filters.OrderingFilter",
    ],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "django-hilo's shop",
    "DESCRIPTION": "The shop's objects, and the counters that their ids come from.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # Nothing is loaded from a CDN.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

STATIC_URL = "static/"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler", "level": "WARNING"}},
    "loggers": {
        # Without DEBUG, Django would mail the errors of pages to nobody.
        "django.request": {"handlers": ["stderr"], "level": "ERROR"},
        "django_hilo": {"handlers": ["stderr"], "level": "WARNING"},
    },
}
