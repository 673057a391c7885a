"""The same with Unfold, whose templates take the place of Django's."""

from tests.long.browser.settings import *  # noqa: F403
from tests.long.browser.settings import INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = ["unfold", *INSTALLED_APPS]
# Unfold's pages need scripts and styles inline.
MIDDLEWARE = [name for name in MIDDLEWARE if name != "tests.long.browser.policy.strict"]
ROOT_URLCONF = "tests.long.browser.with_unfold.urls"
