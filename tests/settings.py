from tests.support.databases import (
    CHOSEN,
    OTHER,
    settings_for,
    take_names_from_environment,
)
from tests.support.patience import PATIENT

DATABASES = {
    "default": settings_for(CHOSEN, "hilo"),
    "other": settings_for(OTHER, "hilo_other"),
}
take_names_from_environment(DATABASES)
HILO = {"NODE_TAG": {"default": "A", "other": "B"}, **PATIENT}
CONTRIB = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
]
INSTALLED_APPS = [
    *CONTRIB,
    "rest_framework",
    "drf_spectacular",
    "django_hilo",
    "tests.apps.records",
    "tests.apps.buckets",
    "tests.apps.numbers",
    "tests.apps.series",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
SPECTACULAR_SETTINGS = {"TITLE": "django-hilo", "VERSION": "1"}
ROOT_URLCONF = "tests.urls"
SECRET_KEY = "tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
