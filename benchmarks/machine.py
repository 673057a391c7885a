"""What the figures were made on."""

from __future__ import annotations

import os
import platform
import statistics
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from django.db import connections

from benchmarks.rounds import seconds_of

PACKAGES = (
    "Django",
    "psycopg",
    "mysqlclient",
    "PyMySQL",
    "uuid_utils",
    "python-ulid",
    "snowflake-id",
    "django-sequences",
    "pyperf",
)
DURABILITY = {
    "postgresql": (
        "SELECT 'fsync = ' || current_setting('fsync') || ', synchronous_commit = ' "
        "|| current_setting('synchronous_commit')"
    ),
    "mysql": (
        "SELECT CONCAT('innodb_flush_log_at_trx_commit = ', "
        "@@innodb_flush_log_at_trx_commit, ', sync_binlog = ', @@sync_binlog)"
    ),
    "sqlite": (
        "SELECT 'journal_mode = ' || journal_mode || ', synchronous = ' || "
        "CASE synchronous WHEN 0 THEN 'OFF' WHEN 1 THEN 'NORMAL' ELSE 'FULL' END "
        "FROM pragma_journal_mode, pragma_synchronous"
    ),
}
TRIES = 200


def described(aliases: list[str], is_quick: bool) -> dict[str, Any]:
    """Return machine, versions, load and the durability of each database."""
    return {
        "when": datetime.now(UTC).strftime("%d %b %Y %H:%M UTC"),
        "quick": is_quick,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "databases": {alias: database(alias) for alias in aliases},
    }


def database(alias: str) -> dict[str, Any]:
    """Return version, durability, and the cost of a round trip and of a commit."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(DURABILITY[connection.vendor])
        durability = cursor.fetchone()[0]
        trips = [
            seconds_of(lambda: (cursor.execute("SELECT 1"), cursor.fetchone()))
            for _ in range(TRIES)
        ]
        cursor.execute("CREATE TABLE commits (n INTEGER)")
        commits = [
            seconds_of(lambda: cursor.execute("INSERT INTO commits VALUES (1)"))
            for _ in range(TRIES)
        ]
        cursor.execute("DROP TABLE commits")
    return {
        "version": ".".join(map(str, connection.get_database_version())),
        "durability": durability,
        "SELECT 1, us": round(statistics.median(trips) * 1e6),
        "INSERT and commit, us": round(statistics.median(commits) * 1e6),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.partition(":")[2] for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0].strip() if names else platform.machine()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
