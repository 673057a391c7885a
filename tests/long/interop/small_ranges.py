"""The tests' settings, with ranges of HILO_TEST_CAPACITY numbers."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import HILO as _HILO

_CAPACITY = int(os.environ["HILO_TEST_CAPACITY"])
HILO = {**_HILO, "CAPACITY": _CAPACITY, "MAX_CAPACITY": _CAPACITY}
