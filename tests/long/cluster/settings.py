"""A Django process on the servers that HILO_CLUSTER names."""

import json
import os

from tests.support.databases import (
    use_psycopg2_if_wanted,
    use_pymysql_without_mysqlclient,
)

use_psycopg2_if_wanted()
use_pymysql_without_mysqlclient()

_given = json.loads(os.environ["HILO_CLUSTER"])

DATABASES = {"default": {"CONN_MAX_AGE": None, **_given["database"]}}
# Short ranges, so that the processes meet at the counters.
HILO = {"CAPACITY": 4, "MAX_CAPACITY": 8, **_given["hilo"]}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django_hilo",
    "tests.apps.records",
    "tests.apps.numbers",
]
ROOT_URLCONF = "django_hilo.rest_framework.urls"
SECRET_KEY = "tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Nobody else writes here.
SILENCED_SYSTEM_CHECKS = ["django_hilo.W025"]
