"""Deploy check: ids without a node tag, on tables that two servers write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.checks.settings import error
from django_hilo.tables import fields_on, gapless_fields, may_have_table
from django_hilo.targets import given_source


def two_writers(connection: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    """Refuse ids without a node tag where another server takes inserts as well."""
    ask = {"postgresql": _replicated_both_ways, "mysql": _replicated_from}
    ask_server = ask.get(connection.vendor)
    if ask_server is None:
        return
    models = _models_without_tags(connection.alias)
    if not models:
        return
    tables = ask_server(connection)
    labels = [
        model._meta.label
        for model in models
        if tables is None or model._meta.db_table in tables
    ]
    if labels:
        yield error(
            f"On {connection.alias!r} the rows of {', '.join(labels)} are replicated "
            f"to and from another server, and their ids carry no node tag: both "
            f"servers would give the same.",
            "Give them a HiLoField, whose ids show the node tag; or let one server "
            "only take their inserts, and silence this check. What is left of a move "
            "to this server: DROP SUBSCRIPTION, on MariaDB RESET SLAVE ALL.",
            "E027",
        )


def _models_without_tags(alias: str) -> list[Any]:
    """Return the models of integer keys, gapless ids and other systems' counters."""
    fields = [
        field
        for field in fields_on(alias)
        if field.is_integer or given_source(field) is not None
    ]
    fields += [
        field for field in gapless_fields() if may_have_table(alias, field.model)
    ]
    return list(dict.fromkeys(field.model for field in fields))


def _replicated_both_ways(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the tables that are published here and subscribed from elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_subscription_rel r "
            "JOIN pg_subscription s ON s.oid = r.srsubid AND s.subenabled "
            "JOIN pg_class c ON c.oid = r.srrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_publication_tables p "
            "ON p.schemaname = n.nspname AND p.tablename = c.relname "
            "WHERE pg_table_is_visible(c.oid)"
        )
        return {name for (name,) in cursor.fetchall()}


def _replicated_from(connection: BaseDatabaseWrapper) -> set[str] | None:
    """Return no table, or ``None``, all, where the server is a replica that is written.

    Which tables MariaDB replicates, it does not tell. Nodes of Galera are no replicas.
    """
    # What vendor "mysql" has, its base class does not.
    if not connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        return set()
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@read_only")
        if cursor.fetchone()[0]:
            return set()
        cursor.execute("SHOW ALL SLAVES STATUS")
        return None if cursor.fetchall() else set()
