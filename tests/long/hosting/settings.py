"""Of the site that all hosts serve; ``HILO_HOSTED`` (JSON) changes it for one test.

``{"DATABASE": {...}, "OPTIONS": {...}, "HILO": {...}, "OTHERS": {alias: {...}}}``.
"""

import json
import os

from tests.support.databases import CHOSEN, settings_for, take_names_from_environment
from tests.support.patience import PATIENT

_hosted = json.loads(os.environ.get("HILO_HOSTED", "{}"))
_default = settings_for(CHOSEN, "hilo")

DATABASES = {
    "default": {
        **_default,
        **_hosted.get("DATABASE", {}),
        "OPTIONS": {**_default.get("OPTIONS", {}), **_hosted.get("OPTIONS", {})},
    }
}
take_names_from_environment(DATABASES)
for _alias, _changes in _hosted.get("OTHERS", {}).items():
    DATABASES[_alias] = {**DATABASES["default"], **_changes}
# Ranges that are soon empty, so that processes meet at the counter.
HILO = {
    **{"NODE_TAG": "A", "CAPACITY": 8, "MAX_CAPACITY": 8},
    **PATIENT,
    **_hosted.get("HILO", {}),
}
INSTALLED_APPS = ["django.contrib.staticfiles", "django_hilo", "tests.apps.records"]
STATIC_URL = "static/"  # runserver serves those of no app as well
ROOT_URLCONF = os.environ.get("HILO_TEST_URLS", "tests.long.hosting.urls")
WSGI_APPLICATION = "tests.long.hosting.wsgi.application"
ALLOWED_HOSTS = ["127.0.0.1"]
DEBUG = True
SECRET_KEY = "tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
