"""A portal whose users have HiLo keys: texts or integers, as HILO_TEST_KEYS says."""

import os

from tests.long.fellows.settings import (  # noqa: F401
    DEFAULT_AUTO_FIELD,
    HILO,
    LANGUAGE_CODE,
    MIGRATION_MODULES,
    PASSWORD_HASHERS,
    SECRET_KEY,
    STATIC_URL,
    TEMPLATES,
    USE_TZ,
)
from tests.settings import CONTRIB
from tests.support.databases import CHOSEN, settings_for

HILO_TEST_KEYS = os.environ["HILO_TEST_KEYS"]
DATABASES = {"default": settings_for(CHOSEN, f"hilo_portal_{HILO_TEST_KEYS}")}
AUTH_USER_MODEL = "people.Member"
OAUTH2_PROVIDER_APPLICATION_MODEL = "people.Client"
SITE_ID = 1
INSTALLED_APPS = [
    *CONTRIB,
    "django.contrib.sites",
    "django.contrib.staticfiles",
    "django_hilo",
    "tests.long.fellows.portal.people",
    "allauth",
    "allauth.account",
    "cms",
    "menus",
    "oauth2_provider",
    "sekizai",
    "treebeard",
    "tests.long.fellows.portal.pages",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "cms.middleware.user.CurrentUserMiddleware",
    "cms.middleware.page.CurrentPageMiddleware",
    "cms.middleware.toolbar.ToolbarMiddleware",
    "cms.middleware.language.LanguageCookieMiddleware",
]
TEMPLATES[0]["OPTIONS"]["context_processors"] += [
    "django.template.context_processors.i18n",
    "cms.context_processors.cms_settings",
    "sekizai.context_processors.sekizai",
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
    "oauth2_provider.backends.OAuth2Backend",
]
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*"]
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
CMS_CONFIRM_VERSION4 = True
# Its cache of permissions takes the keys of users for integers.
CMS_PERMISSION = HILO_TEST_KEYS == "integer"
CMS_TEMPLATES = [("pages/page.html", "Page")]
LANGUAGES = [("en", "English")]
X_FRAME_OPTIONS = "SAMEORIGIN"
ROOT_URLCONF = "tests.long.fellows.portal.urls"
