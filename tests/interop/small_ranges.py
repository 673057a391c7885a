"""The tests' settings, with ranges of HILO_TEST_CAPACITY numbers."""

from __future__ import annotations

import os

from tests.patience import PATIENCE
from tests.settings import *  # noqa: F403
from tests.settings import HILO as _HILO

_CAPACITY = int(os.environ["HILO_TEST_CAPACITY"])
HILO = {
    **_HILO,
    **{"CAPACITY": _CAPACITY, "MAX_CAPACITY": _CAPACITY},
    # Others hold the row for as long as a busy machine lets them wait.
    **{"LOCK_TIMEOUT": PATIENCE, "RETRY_FOR": PATIENCE},
}
