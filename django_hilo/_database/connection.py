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
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from math import ceil
from typing import NamedTuple

from django.core import mail
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import dialect_of
from django_hilo._database.rollback import RollbackDetector
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout


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


_LOCKS_COUNTER = "hilo_locks_counter"


def in_callers_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Whether a range reserved now would belong to the caller's transaction."""
    if dialect_of(connection).has_one_writer:
        return connection.in_atomic_block or not has_autocommit(connection)
    if not connection.in_atomic_block:
        return False
    detector: RollbackDetector | None = vars(connection).get(_LOCKS_COUNTER)
    return in_test_case(connection) or (detector is not None and detector.is_alive())


def bind(connection: BaseDatabaseWrapper) -> None:
    """Let the open transaction, which locks a counter itself, reserve what it needs.

    On a connection of its own a reservation would wait for it in vain.
    """
    vars(connection)[_LOCKS_COUNTER] = RollbackDetector(connection, lambda: None)


def in_test_case(connection: BaseDatabaseWrapper) -> bool:
    """Whether a TestCase (or pytest-django's ``db``) will roll everything back."""
    for block in connection.atomic_blocks:
        if getattr(block, "_from_testcase", False):
            return True
    return False


def has_autocommit(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement outside ``atomic()`` commits by itself; no query."""
    if connection.connection is None:
        return bool(connection.settings_dict["AUTOCOMMIT"])
    return connection.autocommit


_OWN_ONLY = "hilo_own_only"


@contextmanager
def use_own(alias: str) -> Iterator[None]:
    """Force counter statements of this thread onto the process's own connection."""
    known = vars(connections[alias])
    known[_OWN_ONLY] = True
    try:
        yield
    finally:
        del known[_OWN_ONLY]


def counter_connection(
    connection: BaseDatabaseWrapper, bound: bool, timeout: float
) -> AbstractContextManager[str]:
    """Return a context that gives the alias for a counter's statements in this thread.

    It is the alias of the caller's ``connection`` or of the process's own connection,
    which the context waits for up to ``timeout`` seconds, else `ReservationTimeout`.
    ``bound`` is what `in_callers_transaction` returns.
    """
    if bound or not (
        connection.in_atomic_block
        or dialect_of(connection).always_own_connection
        or _OWN_ONLY in vars(connection)
        or not has_autocommit(connection)
    ):
        return nullcontext(connection.alias)
    own = _this_process().setdefault(connection.alias, OwnConnection(connection.alias))
    return own.use(connection, timeout)


class OwnConnection:
    """The one connection that this process adds to an alias.

    One thread uses it at a time. A thread that asks for it again while it uses it gets
    an error at once: it would wait for itself.
    """

    def __init__(self, alias: str) -> None:
        self.alias = f"{alias}:hilo"
        self.user: int | None = None  # the thread in whose `with` block it is
        # Of a thread, so that no other can release it.
        self.lock = threading.RLock()
        self._wrapper: BaseDatabaseWrapper | None = None
        self._opened_for: tuple[str, ...] | None = None
        self._held_for_fork = False

    def use(
        self, callers: BaseDatabaseWrapper, timeout: float
    ) -> AbstractContextManager[str]:
        """Return a context that gives the connection's alias to this thread alone.

        It waits up to ``timeout`` seconds for other threads, else `ReservationTimeout`,
        and raises `NestedReservation` in a thread that uses the connection already.
        """
        return _Use(self, callers, timeout)

    def open(self, callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        """Return the connection, to the database and schema of the caller's."""
        key = key_by(callers, callers.alias)
        if self._wrapper is not None and self._opened_for != key.without_schema:
            self._wrapper.close()
            self._wrapper = None
        if self._wrapper is None:
            self._wrapper = _copy(callers)
            self._opened_for = key.without_schema
        if key.schema != schema_of(self._wrapper):
            _switch(self._wrapper, key.schema)
        return self._wrapper

    def close_as_due(self, at_once: bool = False) -> None:
        """Close the connection when ``CONN_MAX_AGE`` says so, or at once."""
        if self._wrapper is None:
            return
        # A test runner cannot drop a database that a connection is open to.
        if at_once or in_tests():
            self._wrapper.close()
        else:
            self._wrapper.close_if_unusable_or_obsolete()

    def close_if_obsolete(self) -> None:
        """Close the connection as due unless somebody uses it."""
        if self.lock.acquire(blocking=False):
            try:
                if self.user is None:
                    self.close_as_due()
            finally:
                self.lock.release()

    def close_before_fork(self, timeout: float) -> None:
        """Close the connection and keep other threads off it until the fork is done."""
        self._held_for_fork = self.lock.acquire(timeout=timeout)
        if self._held_for_fork and self.user is None:
            self.close_as_due(at_once=True)

    def go_on_after_fork(self) -> None:
        """Let the parent's threads use the connection again."""
        if self._held_for_fork:
            self._held_for_fork = False
            self.lock.release()


class _Use:
    """A `with` block that uses the own connection."""

    def __init__(
        self, own: OwnConnection, callers: BaseDatabaseWrapper, timeout: float
    ) -> None:
        self._own = own
        self._callers = callers
        self._timeout = timeout
        self._is_open = False

    def __enter__(self) -> str:
        own, alias = self._own, self._callers.alias
        if own.user == threading.get_ident():
            raise NestedReservation(
                f"This thread is changing a counter on {alias!r} already, and was "
                f"asked for another number meanwhile: by a finalizer (__del__), a "
                f"receiver of connection_created, or a signal handler. Take ids "
                f"elsewhere than there."
            )
        # A signal's handler may raise after any call.
        self._is_open = True
        try:
            if not own.lock.acquire(timeout=self._timeout):
                raise ReservationTimeout(
                    f"The connection that reserves ranges on {alias!r} was busy for "
                    f"{self._timeout:g} s. Look for a transaction that holds the row "
                    f"of a HiLoDocument, or raise HILO['LOCK_TIMEOUT']."
                )
            own.user = threading.get_ident()
            connections[own.alias] = own.open(self._callers)
        except BaseException:
            self._end(is_sound=True)
            raise
        return own.alias

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # After an error that is not the database's, an answer may be under way.
        self._end(is_sound=kind is None or issubclass(kind, Error | HiLoError))

    def __del__(self) -> None:
        # A signal's handler may raise before the first line of __exit__() runs.
        self._end(is_sound=False)

    def _end(self, is_sound: bool) -> None:
        if not self._is_open:
            return
        self._is_open = False
        own = self._own
        try:
            if own.user == threading.get_ident():
                try:
                    with suppress(AttributeError):  # it could not be opened
                        del connections[own.alias]
                    own.close_as_due(at_once=not is_sound)
                finally:
                    own.user = None
        finally:
            with suppress(RuntimeError):  # it was not acquired
                own.lock.release()


def _copy(callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    own = callers.copy()
    options = own.settings_dict["OPTIONS"]
    options.pop("pool", None)  # the caller may hold the pool's last connection
    longest = ceil(settings.LOCK_TIMEOUT + settings.RETRY_FOR)
    dialect_of(own).set_own_options(options, longest)
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
