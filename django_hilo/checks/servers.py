"""Deploy checks of a server: what it may lose, who else writes, what is before it."""

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation.registry import given_source
from django_hilo._database.dialects.postgresql import WITH_STANDBY
from django_hilo._operations.locations import (
    fields_on,
    gapless_fields_on,
    series_fields_on,
)
from django_hilo.checks.inspections import inspection_of
from django_hilo.checks.settings import error
from django_hilo.conf import settings
from django_hilo.models import GaplessCounter, HiLoDocument


def lost_commits(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Check for server settings by which a crash or a failover loses commits."""
    inspection, wanted = inspection_of(connection), settings.SYNCHRONOUS_COMMIT
    if wanted in WITH_STANDBY and inspection.lacks_standbys(connection):
        yield error(
            f"HILO['SYNCHRONOUS_COMMIT'] is {wanted!r}, but the server of "
            f"{connection.alias!r} has no synchronous standby.",
            "Set synchronous_standby_names on the server, or "
            "HILO['SYNCHRONOUS_COMMIT'] = None.",
            "E028",
        )
    unsafe = inspection.unsafe_setting(connection)
    if unsafe is not None:
        setting, remedy = unsafe
        yield checks.Warning(
            f"The server of {connection.alias!r} has {setting}: after a crash it may "
            f"repeat ranges of the last second.",
            hint=remedy,
            id="django_hilo.W029",
        )


def without_locks(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Refuse tables of counters whose engine locks no rows."""
    ours = [model._meta.db_table for model in (HiLoDocument, GaplessCounter)]
    for table, engine in inspection_of(connection).without_locks(connection, ours):
        yield error(
            f"The table {table} on {connection.alias!r} uses the engine {engine}, "
            f"which does not lock rows: two processes would get the same numbers.",
            f"Run ALTER TABLE {table} ENGINE=InnoDB, set default_storage_engine = "
            f"InnoDB on the server, then run hilo_raise_max.",
            "E037",
        )


def two_writers(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Refuse ids without a node tag if another server takes inserts too."""
    models = _models_without_tags(connection.alias)
    if not models:
        return
    tables = inspection_of(connection).twice_written(connection)
    labels = [
        model._meta.label
        for model in models
        if tables is None or model._meta.db_table.strip('"') in tables
    ]
    if labels:
        yield error(
            f"On {connection.alias!r} the rows of {', '.join(labels)} are replicated "
            f"to and from another server, but their ids have no node tag: both servers "
            f"would create the same ids.",
            "Use a HiLoField, whose ids show the node tag; or insert on one server "
            "only and silence this check. If replication is left over from a move to "
            "this server: DROP SUBSCRIPTION, on MariaDB RESET SLAVE ALL.",
            "E027",
        )


def _models_without_tags(alias: str) -> list[Any]:
    """Return the models of integer keys, gapless ids, series and other sources."""
    fields = [f for f in fields_on(alias) if f.is_integer or given_source(f)]
    fields += [*gapless_fields_on(alias), *series_fields_on(alias)]
    return list(dict.fromkeys(field.model for field in fields))


def shared_tag(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of a cluster whose nodes, as far as its counters show, have one node tag."""
    alias, tag = connection.alias, settings.node_tag(connection.alias)
    rows = HiLoDocument.objects.using(alias)
    if (
        inspection_of(connection).has_several_primaries(connection)
        and rows.filter(node_tag=tag).exists()
        and not rows.exclude(node_tag__in=["", tag]).exists()
    ):
        yield checks.Warning(
            f"The database of {alias!r} is a cluster that takes writes on several "
            f"nodes, but all ids so far have the node tag {tag!r}: reservations of two "
            f"nodes collide and are retried.",
            hint="Give the programs of each node their own NODE_TAG. If all programs "
            "write to the same node, silence this check.",
            id="django_hilo.W035",
        )


def few_connections(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Warn of a limit under what a single process may open."""
    pool = connection.settings_dict["OPTIONS"].get("pool")
    sizes = pool if isinstance(pool, dict) else {}
    # psycopg's pool has min_size, by default 4, unless it is told more.
    of_pool = sizes.get("max_size") or sizes.get("min_size", 4)
    needed = 1 + (of_pool if pool else 1)
    most = inspection_of(connection).most_connections(connection)
    if most is not None and most < needed:
        yield checks.Warning(
            f"The server of {connection.alias!r} limits connections to {most}, but a "
            f"process may open {needed}: a reservation inside a transaction needs one "
            f"more.",
            hint="Raise the limit of the server, the database or the user, or use a "
            "smaller pool.",
            id="django_hilo.W039",
        )
