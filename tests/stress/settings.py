"""The settings of the tests, for one database that many processes share."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.databases import CHOSEN
from tests.settings import *  # noqa: F403
from tests.settings import DATABASES as _DATABASES

# What differs among the workers: {"hilo": {...}, "conn_max_age": ...}.
_profile: dict[str, Any] = json.loads(os.environ.get("HILO_STRESS_PROFILE", "{}"))
_default: dict[str, Any] = {
    **_DATABASES["default"],
    "CONN_MAX_AGE": _profile.get("conn_max_age", 0),
    "TEST": {"NAME": f"hilo_stress_{os.getpid()}"},
}
if CHOSEN == "sqlite":
    _default["TEST"]["NAME"] = Path(os.environ["HILO_STRESS_FOLDER"], "stress.sqlite3")
    _default["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        # Writers queue without order: one of 40 may wait long.
        "timeout": 60,
        "init_command": "PRAGMA synchronous=NORMAL",
    }

DATABASES = {"default": _default}
HILO = {"NODE_TAG": "A", **_profile.get("hilo", {})}
