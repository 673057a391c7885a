"""Which database and schema an alias stands for now."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


class DatabaseKey(NamedTuple):
    """An alias, and the database and schema that it stood for."""

    alias: str
    name: str
    host: str
    port: str
    # None if it is not known. django-tenants sets ``connection.schema_name``; projects
    # that set ``search_path`` in another way must set it too, since reading the search
    # path takes a query.
    schema: str | None


def database_key(alias: str) -> DatabaseKey:
    """Return the key of the database that an alias stands for now; no I/O."""
    connection = connections[alias]
    options, schema = connection.settings_dict, getattr(connection, "schema_name", None)
    name, host, port = map(str, (options["NAME"], options["HOST"], options["PORT"]))
    return DatabaseKey(alias, name, host, port, schema)


def has_schemas(connection: BaseDatabaseWrapper) -> bool:
    """Whether a connection may be to one schema now and to another later."""
    return "schema_name" in vars(connection) or hasattr(connection, "set_schema")


def is_still_there(database: DatabaseKey) -> bool:
    """Whether an alias still stands for this database, in any schema."""
    if database.alias not in connections.settings:
        return False  # a program may remove an alias while it runs
    return database_key(database.alias)._replace(schema=database.schema) == database


@contextmanager
def in_schema(alias: str, schema: str | None) -> Iterator[None]:
    """Switch this thread's connection to a schema within the block, then back."""
    connection = connections[alias]
    before = getattr(connection, "schema_name", None)
    tenant = getattr(connection, "tenant", None)
    switch(connection, schema)
    try:
        yield
    finally:
        switch(connection, before)
        if tenant is not getattr(connection, "tenant", None):
            # django-tenants' connection forgets it when the schema is switched.
            connection.set_tenant(tenant)  # type: ignore[attr-defined] # django-tenants has it


def switch(connection: BaseDatabaseWrapper, schema: str | None) -> None:
    """Switch a connection to a schema, as django-tenants does where it is used."""
    if schema == getattr(connection, "schema_name", None):
        return
    if hasattr(connection, "set_schema"):
        # django-tenants sets the search path for each cursor.
        connection.set_schema(schema)
    else:
        vars(connection)["schema_name"] = schema
