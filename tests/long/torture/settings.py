"""The settings of the tests, for one database that all processes of a run share."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES as _DATABASES
from tests.settings import MIDDLEWARE as _MIDDLEWARE
from tests.support.databases import CHOSEN

FOLDER = Path(os.environ["HILO_TORTURE_FOLDER"])
USER, PASSWORD = "torturer", "torture"
TOKEN = "torture"

# Short, so that a stranger who holds the row for longer does not take all the time.
LOCK_TIMEOUT = 2.0

_default: dict[str, Any] = {**_DATABASES["default"], "TEST": {"NAME": "hilo_torture"}}
if CHOSEN == "sqlite":
    _default["TEST"]["NAME"] = FOLDER / "torture.sqlite3"
    _default["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA synchronous=NORMAL",
    }

DATABASES = {"default": _default}
HILO = {
    "NODE_TAG": "A",
    "LOCK_TIMEOUT": LOCK_TIMEOUT,
    "RETRY_FOR": 8.0,
    "RAVENDB_DATABASES": {"shop": "default"},
    "RAVENDB_TOKENS": [sha256(TOKEN.encode()).hexdigest()],
}
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware", *_MIDDLEWARE]
