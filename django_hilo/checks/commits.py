"""Deploy check: commits of counters that a crash of the server would undo."""

from __future__ import annotations

from collections.abc import Iterator

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.dialects.postgresql import WITH_STANDBY
from django_hilo.checks.settings import error
from django_hilo.conf import settings


def lost_commits(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Compare the server's settings with what the counters need."""
    dialect, wanted = dialect_of(connection), settings.SYNCHRONOUS_COMMIT
    if wanted in WITH_STANDBY and dialect.lacks_standbys(connection):
        yield error(
            f"HILO['SYNCHRONOUS_COMMIT'] is {wanted!r}, but the server of "
            f"{connection.alias!r} names no standby.",
            "Set synchronous_standby_names on the server, or "
            "HILO['SYNCHRONOUS_COMMIT'] = None.",
            "E028",
        )
    unsafe = dialect.unsafe_setting(connection)
    if unsafe is not None:
        setting, remedy = unsafe
        yield checks.Warning(
            f"The server of {connection.alias!r} has {setting}: after a crash it may "
            f"give ranges of the last second again.",
            hint=remedy,
            id="django_hilo.W029",
        )
