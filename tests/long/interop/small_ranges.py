"""The tests' settings, django-sequences, and ranges of HILO_TEST_CAPACITY numbers."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import HILO as _HILO
from tests.settings import INSTALLED_APPS as _APPS

_CAPACITY = int(os.environ["HILO_TEST_CAPACITY"])
INSTALLED_APPS = [*_APPS, "sequences"]
HILO = {**_HILO, "CAPACITY": _CAPACITY, "MAX_CAPACITY": _CAPACITY}
