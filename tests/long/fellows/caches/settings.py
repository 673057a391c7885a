"""A project that caches queries, with the package that HILO_TEST_CACHE names."""

import os

from tests.long.fellows.settings import (  # noqa: F401 - settings of this project, too
    DEFAULT_AUTO_FIELD,
    HILO,
    MIGRATION_MODULES,
    SECRET_KEY,
    TEMPLATES,
    USE_TZ,
)
from tests.settings import CONTRIB, MIDDLEWARE  # noqa: F401 - settings of this project, too
from tests.support.databases import CHOSEN, settings_for

PACKAGE = os.environ["HILO_TEST_CACHE"]
DATABASES = {"default": settings_for(CHOSEN, f"hilo_{PACKAGE}")}
INSTALLED_APPS = [
    *CONTRIB,
    "django_hilo",
    "tests.long.fellows.caches.stock",
    PACKAGE,
]
ROOT_URLCONF = "tests.long.fellows.caches.urls"
STATIC_URL = "static/"
CACHALOT_UNCACHABLE_APPS = ["django_hilo"]
CACHEOPS_REDIS = os.environ.get("HILO_TEST_REDIS", "")
CACHEOPS = {
    "django_hilo.*": None,
    "auth.*": None,
    "contenttypes.*": None,
    "*.*": {"ops": "all", "timeout": 3600},
}
