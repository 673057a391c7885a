"""Deploy checks: whether the databases keep what the counters promise.

They ask all databases, as ``check --deploy`` names none, but in tests, which may forbid
it: there those that are named. One that does not answer is told, and stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error, connections

from django_hilo._database.connection import in_tests
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._operations.table_scan import aliases, homes
from django_hilo.checks.ahead import last_numbers, low_counters, short_columns
from django_hilo.checks.commits import lost_commits
from django_hilo.checks.replication import two_writers
from django_hilo.checks.settings import are_node_tags, are_sources, is_alias
from django_hilo.conf import settings


def check_servers(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Look for shared node tags, keys given twice, lost commits, and what ends soon."""
    if not (
        is_alias(settings.DATABASE)
        and are_node_tags(settings.NODE_TAG)
        and are_sources(settings.SOURCES)
    ):
        return []  # check_settings tells
    found: list[checks.CheckMessage] = []
    named = databases or (() if in_tests() else aliases())
    for alias in aliases():
        if alias not in named:
            continue
        connection = connections[alias]
        try:
            if alias in homes():
                found += lost_commits(connection)
                found += last_numbers(connection)
            found += two_writers(connection)
            found += low_counters(connection)
            found += short_columns(connection)
        except Error as problem:
            if classify(problem, connection) is not ErrorKind.NO_TABLE:
                found.append(
                    checks.Info(
                        f"The server of {alias!r} could not be looked at: {problem}",
                        hint="Run the check after migrate, as a role that may ask.",
                        id="django_hilo.I030",
                    )
                )
    return found
