"""A Django process on one node of the cluster."""

from __future__ import annotations

import os

from tests.long.cluster.galera.cluster import DATABASE
from tests.long.cluster.galera.limits import (
    CONNECT_TIMEOUT,
    LOCK_TIMEOUT,
    READ_TIMEOUT,
    RETRY_FOR,
)
from tests.support.databases import ENGINES, use_pymysql_without_mysqlclient

use_pymysql_without_mysqlclient()

# Where nothing is broken, or a test sets its own limits.
_PATIENCE = int(os.environ.get("HILO_GALERA_PATIENCE", "0"))

DATABASES = {
    "default": {
        "ENGINE": ENGINES["mariadb"],
        "NAME": DATABASE,
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": os.environ["HILO_GALERA_PORT"],
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "charset": "utf8mb4",
            "isolation_level": "read committed",
            "connect_timeout": _PATIENCE or CONNECT_TIMEOUT,
            "read_timeout": _PATIENCE or READ_TIMEOUT,
            "write_timeout": _PATIENCE or READ_TIMEOUT,
        },
    }
}
HILO = {
    "NODE_TAG": os.environ["HILO_GALERA_TAG"],
    # Short ranges, so that the processes meet at the counters.
    "CAPACITY": 4,
    "MAX_CAPACITY": 8,
    "LOCK_TIMEOUT": _PATIENCE or LOCK_TIMEOUT,
    "RETRY_FOR": _PATIENCE or RETRY_FOR,
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
# Nobody else writes here.
SILENCED_SYSTEM_CHECKS = ["django_hilo.W025"]
