"""A Django process of one site, or one that follows the primary."""

from __future__ import annotations

import os

from tests.long.cluster.postgres.limits import LOCK_TIMEOUT, RETRY_FOR
from tests.support.databases import ENGINES, use_psycopg2_if_wanted

use_psycopg2_if_wanted()


DATABASES = {
    "default": {
        "ENGINE": ENGINES["postgres"],
        "NAME": os.environ["HILO_POSTGRES_NAME"],
        "USER": "postgres",
        # Of several servers libpq takes the first that is no standby.
        "HOST": os.environ["HILO_POSTGRES_HOST"],
        "PORT": os.environ["HILO_POSTGRES_PORT"],
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": os.environ.get("HILO_POSTGRES_HEALTH_CHECKS") == "1",
        "OPTIONS": {"connect_timeout": 180, "target_session_attrs": "read-write"},
    }
}
HILO = {
    "NODE_TAG": os.environ["HILO_POSTGRES_TAG"],
    # Short ranges, so that the processes meet at the counter.
    "CAPACITY": 4,
    "MAX_CAPACITY": 8,
    "LOCK_TIMEOUT": LOCK_TIMEOUT,
    "RETRY_FOR": RETRY_FOR,
    "SYNCHRONOUS_COMMIT": os.environ.get("HILO_POSTGRES_COMMIT") or None,
}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django_hilo",
    "tests.apps.records",
    "tests.apps.numbers",
]
SECRET_KEY = "tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
