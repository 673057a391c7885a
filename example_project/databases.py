from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_ENGINES = {
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
    "mysql": "django.db.backends.mysql",
    "mariadb": "django.db.backends.mysql",
}


def sqlite(path: Path) -> dict[str, Any]:
    """Return the settings of an SQLite database in a file."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            # A transaction that starts by reading cannot wait for a writer later on.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    }


def from_url(url: str) -> dict[str, Any]:
    """Return the settings of a database such as ``postgres://me:secret@host/shop``.

    ``sqlite:///file``, ``postgres://``, ``postgresql://``, ``mysql://``, ``mariadb://``;
    what follows a ``?`` goes to OPTIONS. Raises ImproperlyConfigured.
    """
    parts = urlsplit(url)
    name = unquote(parts.path[1:])
    if parts.scheme == "sqlite" and name and not parts.netloc:
        return sqlite(Path(name))
    if parts.scheme not in _ENGINES or not name:
        # The URL is not shown: it holds a password.
        raise ImproperlyConfigured(
            "The URL of the example's database must be sqlite:///file.sqlite3, "
            "postgres://user:password@host:port/name or mysql://user:password@host/name."
        )
    options = dict(parse_qsl(parts.query))
    if _ENGINES[parts.scheme].endswith("mysql"):
        _use_pymysql_without_mysqlclient()
        options.setdefault("charset", "utf8mb4")
    return {
        "ENGINE": _ENGINES[parts.scheme],
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


def _use_pymysql_without_mysqlclient() -> None:
    try:
        import MySQLdb  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        import pymysql  # type: ignore[import-untyped]

        # Django asks mysqlclient for its version; PyMySQL must claim one.
        pymysql.version_info = (2, 2, 4, "final", 0)
        pymysql.install_as_MySQLdb()
