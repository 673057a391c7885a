"""Deploy check: counters that another server raised last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.servers import raised_elsewhere
from django_hilo.conf import settings

_NAMED_AT_MOST = 10


def other_sites(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of a failover or restore that nobody looked after, and of a shared tag."""
    alias = connection.alias
    tag = settings.node_tag(alias)
    by_server: dict[tuple[str, str], list[str]] = defaultdict(list)
    for document, server in raised_elsewhere(alias, tag):
        by_server[document.raised_by, server].append(document.id)
    for (raised_by, server), keys in by_server.items():
        yield checks.Warning(
            f"On {alias!r}, the server {server}, {len(keys)} counters were last raised "
            f"by the server {raised_by}: {_some(keys)}.",
            hint=f"After a failover or a restore: python manage.py hilo_raise_max "
            f"--database={alias}. Otherwise two sites have the node tag {tag!r}, and "
            f"give the same ids: give each its own.",
            id="django_hilo.W026",
        )


def _some(keys: list[str]) -> str:
    more = len(keys) - _NAMED_AT_MOST
    named = ", ".join(keys[:_NAMED_AT_MOST])
    return f"{named} and {more} more" if more > 0 else named
