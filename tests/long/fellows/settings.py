"""A project that has installed what others install beside django-hilo."""

from importlib.util import find_spec

from tests.settings import (  # noqa: F401
    CONTRIB,
    PASSWORD_HASHERS,
    REST_FRAMEWORK,
    SECRET_KEY,
    TEMPLATES,
    USE_TZ,
)
from tests.support.databases import CHOSEN, settings_for, take_names_from_environment
from tests.support.patience import PATIENT


class NoMigrations(dict[str, None]):
    """For MIGRATION_MODULES: tables are made as the models are."""

    def __contains__(self, app_label: object) -> bool:
        return True

    def __missing__(self, app_label: str) -> None:
        return None


DATABASES = {"default": settings_for(CHOSEN, "hilo_fellows")}
take_names_from_environment(DATABASES)
HILO = {"NODE_TAG": "A", **PATIENT}
MIGRATION_MODULES = NoMigrations()
# Of the packages that leave the type of their keys to the project, too.
DEFAULT_AUTO_FIELD = "django_hilo.fields.HiLoBigAutoField"
INSTALLED_APPS = [
    *CONTRIB,
    "django.contrib.staticfiles",
    "django_hilo",
    "tests.long.fellows.market",
    "tests.long.fellows.workshop",
    "auditlog",
    "debug_toolbar",
    "django_filters",
    "django_tasks",
    "django_tasks_db",
    "drf_spectacular",
    "guardian",
    "import_export",
    "mptt",
    "parler",
    "polymorphic",
    "rest_framework",
    "reversion",
    "simple_history",
    "strawberry_django",
    "taggit",
    "treebeard",
    "wagtail",
    "wagtail.admin",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.snippets",
    "wagtail.users",
    # Last: their templates are for test_unfold.py alone, which puts them first.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.guardian",
    "unfold.contrib.import_export",
    "unfold.contrib.simple_history",
]
# Not for each version of Django that the others have.
if find_spec("django_celery_beat"):
    INSTALLED_APPS.insert(0, "django_celery_beat")
# MariaDB has no unique constraints with conditions, of which Wagtail has one.
SILENCED_SYSTEM_CHECKS = ["models.W036"]
MIDDLEWARE = [
    "debug_toolbar.middleware.DebugToolbarMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    "reversion.middleware.RevisionMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
SPECTACULAR_SETTINGS = {"TITLE": "Market", "VERSION": "1"}
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
DEBUG_TOOLBAR_CONFIG = {"IS_RUNNING_TESTS": False}
INTERNAL_IPS = ["127.0.0.1"]
LANGUAGE_CODE = "en"
# Without tables of time zones, MariaDB knows no other.
TIME_ZONE = "UTC"
PARLER_LANGUAGES = {None: [{"code": "en"}, {"code": "fr"}]}
WAGTAIL_SITE_NAME = "Market"
WAGTAILADMIN_BASE_URL = "http://testserver"
ROOT_URLCONF = "tests.long.fellows.urls"
STATIC_URL = "static/"
DDF_IGNORE_FIELDS = ["id"]
