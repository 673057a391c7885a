"""Deploy check: commits of counters that a crash of the server would undo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.checks.settings import error
from django_hilo.conf import settings
from django_hilo.standbys import WITH_STANDBY


def lost_commits(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Compare the server's settings with what the counters need."""
    if connection.vendor == "postgresql":
        names, level = _row(
            connection,
            "SELECT current_setting('synchronous_standby_names'), "
            "current_setting('synchronous_commit')",
        )
        wanted = settings.SYNCHRONOUS_COMMIT
        if wanted in WITH_STANDBY and not names.strip():
            yield error(
                f"HILO['SYNCHRONOUS_COMMIT'] is {wanted!r}, but the server of "
                f"{connection.alias!r} names no standby.",
                "Set synchronous_standby_names on the server, or "
                "HILO['SYNCHRONOUS_COMMIT'] = None.",
                "E028",
            )
        if wanted is None and level == "off":
            yield _warning(
                connection,
                "synchronous_commit = off",
                "Set HILO['SYNCHRONOUS_COMMIT'] = 'local', for the counters alone.",
            )
    elif connection.vendor == "mysql":
        (flushed,) = _row(connection, "SELECT @@innodb_flush_log_at_trx_commit")
        # A node of Galera that crashes has its commits from the others.
        galera = _row(connection, "SHOW VARIABLES LIKE 'wsrep_on'")
        if flushed != 1 and galera != ("wsrep_on", "ON"):
            yield _warning(
                connection,
                f"innodb_flush_log_at_trx_commit = {flushed}",
                "Set it to 1, or run hilo_raise_max after each crash of the server.",
            )


def _warning(
    connection: BaseDatabaseWrapper, setting: str, remedy: str
) -> checks.CheckMessage:
    return checks.Warning(
        f"The server of {connection.alias!r} has {setting}: after a crash it may give "
        f"ranges of the last second again.",
        hint=remedy,
        id="django_hilo.W029",
    )


def _row(connection: BaseDatabaseWrapper, query: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return tuple(cursor.fetchone() or ())
