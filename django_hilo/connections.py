"""On which connection the statements of a counter run.

Inside a caller's transaction the counter gets a connection of its own: on the caller's,
the row would stay locked until the caller's commit, and a rollback would give the range
out again. SQLite has one writer at a time, and a TestCase rolls everything back: there
the caller's connection is used, and the range is bound to its transaction.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import NamedTuple

from django.core import mail
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.conf import settings
from django_hilo.exceptions import ReservationTimeout
from django_hilo.standbys import waits
from django_hilo.transactions import Bond


class DatabaseKey(NamedTuple):
    """What tells one database from another, whatever its alias is called."""

    alias: str
    name: str
    host: str
    port: str
    schema: str | None

    @property
    def without_schema(self) -> tuple[str, ...]:
        """What it shares with the other schemas of its database."""
        return self.alias, self.name, self.host, self.port


def database_key(alias: str) -> DatabaseKey:
    """Return the key of the database that an alias stands for now; no I/O."""
    return key_by(connections[alias], alias)


def key_by(connection: BaseDatabaseWrapper, alias: str) -> DatabaseKey:
    """Return the key of an alias's database by this thread's connection to it."""
    options = connection.settings_dict
    return DatabaseKey(
        alias,
        str(options["NAME"]),
        str(options["HOST"]),
        str(options["PORT"]),
        schema_of(connection),
    )


def schema_of(connection: BaseDatabaseWrapper) -> str | None:
    """Return the schema that a connection was switched to, None where nobody tells.

    django-tenants sets ``connection.schema_name``; whoever sets ``search_path`` in
    another way sets it too, since the search path cannot be known without a query.
    """
    return getattr(connection, "schema_name", None)


def has_schemas(connection: BaseDatabaseWrapper) -> bool:
    """Whether a connection may be to one schema now and to another later."""
    return "schema_name" in vars(connection) or hasattr(connection, "set_schema")


def is_still_there(database: DatabaseKey) -> bool:
    """Whether an alias stands for this database, in whatever schema it is now."""
    # A program may take an alias away while it runs.
    return (
        database.alias in connections.settings
        and database_key(database.alias).without_schema == database.without_schema
    )


@contextmanager
def in_schema(alias: str, schema: str | None) -> Iterator[None]:
    """Switch this thread's connection to a schema, as its requests do, and back."""
    connection = connections[alias]
    before = schema_of(connection)
    if schema == before:
        yield
        return
    tenant = getattr(connection, "tenant", None)
    _switch(connection, schema)
    try:
        yield
    finally:
        _switch(connection, before)
        if tenant is not None:
            # Of django-tenants, as the tenant is.
            connection.set_tenant(tenant)  # type: ignore[attr-defined]


_BINDS = "hilo_binds"


def is_bound(connection: BaseDatabaseWrapper) -> bool:
    """Whether a range reserved now would belong to the caller's transaction."""
    if connection.vendor == "sqlite":
        return connection.in_atomic_block or not _autocommit(connection)
    bond: Bond | None = vars(connection).get(_BINDS)
    return in_test_case(connection) or (bond is not None and bond.holds())


def bind(connection: BaseDatabaseWrapper) -> None:
    """Let the open transaction, which locks a counter itself, reserve what it needs.

    On a connection of its own a reservation would wait for it in vain.
    """
    vars(connection)[_BINDS] = Bond(connection, lambda: None)


def in_test_case(connection: BaseDatabaseWrapper) -> bool:
    """Whether a TestCase (or pytest-django's ``db``) will roll everything back."""
    return any(
        getattr(block, "_from_testcase", False) for block in connection.atomic_blocks
    )


def _autocommit(connection: BaseDatabaseWrapper) -> bool:
    if connection.connection is None:
        return bool(connection.settings_dict["AUTOCOMMIT"])
    return connection.autocommit


_OWN_ONLY = "hilo_own_only"


@contextmanager
def use_own(alias: str) -> Iterator[None]:
    """Let counters run on the process's own connection, whatever they could use."""
    known = vars(connections[alias])
    known[_OWN_ONLY] = True
    try:
        yield
    finally:
        del known[_OWN_ONLY]


def _needs_own(connection: BaseDatabaseWrapper) -> bool:
    # MariaDB's lock timeout is a variable of the session, not of the transaction. And a
    # wait for a standby that is cancelled costs the connection.
    return (
        connection.vendor == "mysql"
        or _OWN_ONLY in vars(connection)
        or waits(connection)
        or connection.in_atomic_block
        or not _autocommit(connection)
    )


@contextmanager
def counter_connection(alias: str, timeout: float) -> Iterator[str]:
    """Give the alias, usable in this thread, that a counter's statements shall use.

    It is the caller's alias or that of the process's own connection, for which this
    waits up to ``timeout`` seconds, else `ReservationTimeout`.
    """
    connection = connections[alias]
    if is_bound(connection) or not _needs_own(connection):
        yield alias
        return
    with _own_connection(alias).used_for(connection, timeout) as own_alias:
        yield own_alias


class OwnConnection:
    """The one connection that this process adds to an alias, for one use at a time."""

    def __init__(self, alias: str) -> None:
        self._alias = f"{alias}:hilo"
        self._wrapper: BaseDatabaseWrapper | None = None
        self._opened_for: tuple[str, ...] | None = None
        self._held_for_fork = False
        # Of a thread, so that no other can release it.
        self._lock = threading.RLock()
        self._is_used = False

    @contextmanager
    def used_for(self, callers: BaseDatabaseWrapper, timeout: float) -> Iterator[str]:
        # A signal's handler may raise as soon as the lock is ours: it is released
        # whatever happened, which fails where it is not.
        try:
            if not self._lock.acquire(timeout=timeout) or self._is_used:
                raise ReservationTimeout(
                    f"The connection that reserves ranges on {callers.alias!r} was "
                    f"busy for {timeout:g} s. Look for a transaction that holds the "
                    f"row of a HiLoDocument, or raise HILO['LOCK_TIMEOUT']."
                )
            self._is_used = True
            try:
                connections[self._alias] = self._open(callers)
                try:
                    yield self._alias
                finally:
                    del connections[self._alias]
                    self._close_as_due()
            finally:
                self._is_used = False
        finally:
            try:  # noqa: SIM105 - a handler may raise after any call before it
                self._lock.release()
            except RuntimeError:
                pass

    def _open(self, callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        key = database_key(callers.alias)
        if self._wrapper is not None and self._opened_for != key.without_schema:
            self._wrapper.close()
            self._wrapper = None
        if self._wrapper is None:
            self._wrapper = _copy(callers)
            self._opened_for = key.without_schema
        if key.schema != schema_of(self._wrapper):
            _switch(self._wrapper, key.schema)
        return self._wrapper

    def _close_as_due(self) -> None:
        if self._wrapper is None:
            return
        if in_tests():
            # A test runner cannot drop a database that a connection is open to.
            self._wrapper.close()
        else:
            self._wrapper.close_if_unusable_or_obsolete()

    def close_if_obsolete(self) -> None:
        """Close the connection when ``CONN_MAX_AGE`` says so and nobody uses it."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._is_used:
                    self._close_as_due()
            finally:
                self._lock.release()

    def close_before_fork(self, timeout: float) -> None:
        """Close the connection and keep other threads off it until the fork is done."""
        self._held_for_fork = self._lock.acquire(timeout=timeout)
        if self._held_for_fork and not self._is_used and self._wrapper is not None:
            self._wrapper.close()

    def go_on_after_fork(self) -> None:
        """Let the parent's threads use the connection again."""
        if self._held_for_fork:
            self._held_for_fork = False
            self._lock.release()


def _copy(callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    own = callers.copy()
    options = own.settings_dict["OPTIONS"]
    options.pop("pool", None)  # the caller may hold the pool's last connection
    if own.vendor == "postgresql":
        from django.db.backends.postgresql.psycopg_any import IsolationLevel

        options["isolation_level"] = IsolationLevel.READ_COMMITTED
    elif own.vendor == "mysql":
        options["isolation_level"] = "read committed"
        # A server that is stopped keeps its connections open, and says nothing.
        longest = ceil(settings.LOCK_TIMEOUT + settings.RETRY_FOR)
        for bound in "connect_timeout", "read_timeout", "write_timeout":
            options.setdefault(bound, longest)
    own.settings_dict["AUTOCOMMIT"] = True
    own.inc_thread_sharing()
    return own


def _switch(own: BaseDatabaseWrapper, schema: str | None) -> None:
    if hasattr(own, "set_schema"):
        # django-tenants sets the search path anew for each cursor.
        own.set_schema(schema)
    else:
        vars(own)["schema_name"] = schema


def in_tests() -> bool:
    """Whether a test runner has set this process up."""
    # What django.test.utils.setup_test_environment() leaves to be seen, under Django's
    # runner and under pytest-django.
    return hasattr(mail, "outbox")


_own_connections: dict[str, OwnConnection] = {}
_owner = os.getpid()
# What a child inherited: a thread of the parent was using it, or no hook saw the fork.
# Kept, because the end of the object would end the parent's session on the socket that
# both share.
_inherited: list[dict[str, OwnConnection]] = []


def _own_connection(alias: str) -> OwnConnection:
    return _this_process().setdefault(alias, OwnConnection(alias))


def _this_process() -> dict[str, OwnConnection]:
    # uWSGI forks in C: by itself it runs none of Python's hooks.
    if _owner != os.getpid():
        after_fork_in_child()
    return _own_connections


def close_obsolete(**kwargs: object) -> None:
    """Close what is due; a receiver of request_started and request_finished."""
    for own in list(_this_process().values()):
        own.close_if_obsolete()


def before_fork() -> None:
    """Close the process's own connections, so that no child inherits one."""
    for own in list(_this_process().values()):
        own.close_before_fork(settings.LOCK_TIMEOUT)


def after_fork_in_parent() -> None:
    """Let the parent reserve again."""
    for own in list(_this_process().values()):
        own.go_on_after_fork()


def after_fork_in_child() -> None:
    """Start without connections and with new locks."""
    global _own_connections, _owner
    _inherited.append(_own_connections)
    _own_connections = {}
    _owner = os.getpid()
