"""SQL functions for connections to SQLite, which has no regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import parse
from django_hilo.sharding import bucket_of

NUMBER = "django_hilo_number"
COLLECTION = "django_hilo_collection"
NODE_TAG = "django_hilo_node_tag"
BUCKET = "django_hilo_bucket"


def register() -> None:
    """Add the functions to all connections, including those that are open."""
    connection_created.connect(
        _on_connection_created, dispatch_uid="django_hilo.fields.lookups"
    )
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _add_functions(connection)


def _on_connection_created(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    _add_functions(connection)


def _add_functions(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "sqlite":
        create: Any = connection.connection.create_function
        for name, function in _FUNCTIONS.items():
            # Indexes and generated columns take deterministic functions only.
            create(name, 1, function, deterministic=True)


def _part(name: str) -> Callable[[Any], Any]:
    def part(value: Any) -> Any:
        try:
            return getattr(parse(value), name)
        except InvalidDocumentId:
            return None

    return part


def _bucket(value: Any) -> int | None:
    return bucket_of(value) if isinstance(value, str) else None


_FUNCTIONS = {
    NUMBER: _part("number"),
    COLLECTION: _part("collection"),
    NODE_TAG: _part("node_tag"),
    BUCKET: _bucket,
}
