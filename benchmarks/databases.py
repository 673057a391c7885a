"""The databases of a run, made at its start and dropped at its end.

SQLite is "default"; "postgres", "mariadb" and "mysql" are on the servers of
``HILO_TEST_POSTGRES``, ``HILO_TEST_MARIADB`` and ``HILO_TEST_MYSQL``. All wait for the
disk as their servers are set up to, and SQLite as Django's settings have it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import django
from django.conf import settings
from django.core.management.color import no_style
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.support.databases import URL_VARIABLES, settings_for

SQLITE = "default"
POSTGRES = "postgres"
MARIADB = "mariadb"
MYSQL = "mysql"
SERVERS = (POSTGRES, MARIADB, MYSQL)
# A server behind a proxy, while a measurement lasts.
FAR = "far"
TITLES = {
    SQLITE: "SQLite",
    POSTGRES: "PostgreSQL",
    MARIADB: "MariaDB",
    MYSQL: "MySQL",
}
NAMES = "HILO_BENCH_NAMES"


def configure() -> None:
    """Set Django up, in a process that a run starts on the databases of that run."""
    databases = {SQLITE: entry(SQLITE)}
    for alias in SERVERS:
        if URL_VARIABLES[alias] in os.environ:
            databases[alias] = entry(alias)
    for alias, name in json.loads(os.environ.get(NAMES, "{}")).items():
        databases[alias]["NAME"] = name
    settings.configure(
        DATABASES=databases,
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django_hilo",
            "sequences",
            "benchmarks.shop",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
            }
        ],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()


def missing() -> list[str]:
    """Return a sentence for each server that is not there; or end the process.

    With HILO_TEST_REQUIRE=1, which CI sets, all must be there.
    """
    absent = {
        TITLES[alias]: URL_VARIABLES[alias]
        for alias in SERVERS
        if alias not in connections
    }
    if absent and os.environ.get("HILO_TEST_REQUIRE") == "1":
        sys.exit(f"HILO_TEST_REQUIRE=1, but not set: {', '.join(absent.values())}")
    return [f"anything on {title}: set {url}." for title, url in absent.items()]


def entry(alias: str) -> dict[str, Any]:
    """Return an entry of DATABASES that a project could have."""
    found = settings_for("sqlite" if alias == SQLITE else alias, "hilo_bench")
    if alias == SQLITE:
        found["OPTIONS"] = {"timeout": 60}
    return {**found, "CONN_MAX_AGE": None}


@contextmanager
def made() -> Iterator[list[str]]:
    """Make all databases, give their aliases, and drop them however the run ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by SIGTERM."))
    with ExitStack() as stack:
        for alias in connections:
            stack.enter_context(_made(alias))
        os.environ[NAMES] = json.dumps(
            {
                alias: str(connections[alias].settings_dict["NAME"])
                for alias in connections
            }
        )
        yield list(connections)


@contextmanager
def _made(alias: str) -> Iterator[None]:
    connection = connections[alias]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        _end_sessions(connection)
        connections.close_all()
        connection.creation.destroy_test_db("", verbosity=0)


def _end_sessions(connection: BaseDatabaseWrapper) -> None:
    """End what keeps our database from being dropped, as connections that reserve."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def empty(using: str, *models: Any) -> None:
    """Delete all rows of the models, and of those that refer to them."""
    connection = connections[using]
    tables = [model._meta.db_table for model in models]
    statements = connection.ops.sql_flush(
        no_style(), tables, reset_sequences=False, allow_cascade=True
    )
    connection.ops.execute_sql_flush(statements)


@contextmanager
def reached_by(alias: str, host: str, port: int) -> Iterator[None]:
    """Let "far" be the database of an alias, over another address."""
    near = connections[alias].settings_dict
    connections.settings[FAR] = {**near, "HOST": host, "PORT": str(port)}
    try:
        yield
    finally:
        connections[FAR].close()
        del connections.settings[FAR], connections[FAR]
