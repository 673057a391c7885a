"""A site with the REST endpoints, beside a view that returns a constant."""

from __future__ import annotations

import os

from tests.support.databases import settings_for, take_names_from_environment

DATABASE = "postgres" if "HILO_TEST_POSTGRES" in os.environ else "sqlite"
DATABASES = {
    "default": settings_for(DATABASE, "hilo_benchmark") | {"CONN_MAX_AGE": None}
}
take_names_from_environment(DATABASES)
if DATABASE == "sqlite":
    # Tests do not wait for the disk; figures have to.
    DATABASES["default"]["OPTIONS"] = {}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "rest_framework",
    "rest_framework.authtoken",
    "django_hilo",
    "tests.apps.records",
]
# Tells the length of answers, without which no connection is kept open.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication"
    ]
}
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "benchmarks.urls"
SECRET_KEY = "benchmarks only"  # noqa: S105 - no secret
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
