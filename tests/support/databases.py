"""Which databases a test run uses.

``HILO_TEST_DATABASE`` is sqlite, postgres, mariadb or mysql, or two of them: of
postgres+mariadb the second is the database of the alias "other". Servers come only from
``HILO_TEST_POSTGRES``, ``HILO_TEST_MARIADB`` and ``HILO_TEST_MYSQL`` (URLs), so that
nobody's own server is touched by surprise.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ENGINES = {
    "postgres": "django.db.backends.postgresql",
    "mariadb": "django.db.backends.mysql",
    "mysql": "django.db.backends.mysql",
}
URL_VARIABLES = {database: f"HILO_TEST_{database.upper()}" for database in ENGINES}

# No test takes the machine down: what a process has written outlives its SIGKILL.
WITHOUT_THE_DISK = {"init_command": "PRAGMA synchronous = OFF"}
# SQLite's queue of writers is no queue: on a busy machine one may wait for long.
PATIENT = {**WITHOUT_THE_DISK, "timeout": 60}

CHOSEN, _, _other = os.environ.get("HILO_TEST_DATABASE", "sqlite").partition("+")
OTHER = _other or CHOSEN
# The two of one vendor, as Django has it.
IS_MYSQL = CHOSEN in ("mariadb", "mysql")


def use_pymysql_without_mysqlclient() -> None:
    """Let PyMySQL stand in where mysqlclient, which must be compiled, is missing."""
    wanted = os.environ.get("HILO_TEST_MYSQL_DRIVER")
    try:
        if wanted == "pymysql":
            raise ImportError
        import MySQLdb  # noqa: F401
    except ImportError:
        import pymysql

        pymysql.version_info = (2, 2, 4, "final", 0)
        pymysql.install_as_MySQLdb()


def _without_openssl() -> dict[str, Any]:
    """Return options that keep PyMySQL from OpenSSL, whose locks no child inherits.

    A child that is forked while another thread connects would wait for one for ever.
    """
    import MySQLdb

    return {"ssl_disabled": True} if MySQLdb.__name__ == "pymysql" else {}


def use_psycopg2_if_wanted() -> None:
    """Hide psycopg 3 from Django, which prefers it."""
    if os.environ.get("HILO_TEST_POSTGRES_DRIVER") == "psycopg2":
        sys.modules["psycopg"] = None  # type: ignore[assignment]


def settings_for(database: str, name: str) -> dict[str, Any]:
    """Return an entry of DATABASES for one kind of database."""
    if database == "sqlite":
        folder = Path(tempfile.gettempdir()) / f"django-hilo-tests-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": folder / f"{name}.sqlite3",
            "TEST": {"NAME": folder / f"test-{name}-{os.getpid()}.sqlite3"},
            "OPTIONS": PATIENT,
        }
    options: dict[str, Any] = {}
    if database in ("mariadb", "mysql"):
        use_pymysql_without_mysqlclient()
        options = {"charset": "utf8mb4", **_without_openssl()}
    else:
        use_psycopg2_if_wanted()
    url = urlsplit(os.environ[URL_VARIABLES[database]])
    return {
        "ENGINE": ENGINES[database],
        "NAME": url.path.strip("/") or name,
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "127.0.0.1",
        "PORT": str(url.port or ""),
        "TEST": {"NAME": f"test_{name}_{os.getpid()}"},
        "OPTIONS": options,
    }


def take_names_from_environment(databases: dict[str, dict[str, Any]]) -> None:
    """Point a child process to the test databases of its parent."""
    names = json.loads(os.environ.get("HILO_TEST_NAMES", "{}"))
    for alias, name in names.items():
        databases[alias]["NAME"] = name
        if databases[alias]["ENGINE"].endswith("sqlite3"):
            databases[alias]["OPTIONS"] = PATIENT
