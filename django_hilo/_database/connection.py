"""Choose the connection for a counter's statements.

Inside a caller's transaction that is the process's own connection: on the caller's, the
row would stay locked until the caller's commit, and a rollback would give the range out
again. SQLite has one writer at a time, and a TestCase rolls everything back: both use
the caller's connection, and the range is bound to its transaction.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
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
    """Identify a database, whatever its alias is called."""

    alias: str
    name: str
    host: str
    port: str
    schema: str | None

    @property
    def without_schema(self) -> tuple[str, ...]:
        """The part that all schemas of a database share."""
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
    """Return the schema that a connection was switched to, None if it is not known.

    django-tenants sets ``connection.schema_name``. Projects that set ``search_path`` in
    another way must set it too, since reading the search path takes a query.
    """
    return getattr(connection, "schema_name", None)


def has_schemas(connection: BaseDatabaseWrapper) -> bool:
    """Whether a connection may be to one schema now and to another later."""
    return "schema_name" in vars(connection) or hasattr(connection, "set_schema")


def is_still_there(database: DatabaseKey) -> bool:
    """Whether an alias still stands for this database, in any schema."""
    # A program may remove an alias while it runs.
    return (
        database.alias in connections.settings
        and database_key(database.alias).without_schema == database.without_schema
    )


@contextmanager
def in_schema(alias: str, schema: str | None) -> Iterator[None]:
    """Switch this thread's connection to a schema within the block, then back."""
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
            # A connection with a tenant is django-tenants' own.
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
    """Make reservations use the open transaction, which has locked a counter itself.

    A reservation on the own connection would wait for that lock in vain.
    """
    vars(connection)[_LOCKS_COUNTER] = RollbackDetector(connection, lambda: None)


def in_test_case(connection: BaseDatabaseWrapper) -> bool:
    """Whether a TestCase (or pytest-django's ``db``) will roll everything back."""
    blocks = connection.atomic_blocks
    return any(getattr(block, "_from_testcase", False) for block in blocks)


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
    """Return a context manager that yields the alias for a counter's statements.

    - ``connection``: the caller's connection.
    - ``bound``: the result of `in_callers_transaction`. If True, the caller's
      connection is used.
    - ``timeout``: how many seconds to wait for the own connection; then it raises
      `ReservationTimeout`.
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
    """The one extra connection that this process opens to an alias.

    One thread uses it at a time. A thread that asks for it while using it gets an error
    at once, since it would wait for itself.
    """

    def __init__(self, alias: str) -> None:
        self.alias = f"{alias}:hilo"
        self.user: int | None = None  # the thread that uses it
        # An RLock, because no other thread can release it.
        self.lock = threading.RLock()
        self._wrapper: BaseDatabaseWrapper | None = None
        self._opened_for: tuple[str, ...] | None = None
        self._held_for_fork = False

    def use(
        self, callers: BaseDatabaseWrapper, timeout: float
    ) -> AbstractContextManager[str]:
        """Return a context manager that yields the connection's alias to one thread.

        Waits ``timeout`` seconds for other threads, else raises `ReservationTimeout`.
        Raises `NestedReservation` in a thread that uses the connection already.
        """
        return _Use(self, callers, timeout)

    def open(self, callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        """Return the connection, switched to the caller's database and schema."""
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
        """Close the connection if ``CONN_MAX_AGE`` is over, or at once."""
        if self._wrapper is None:
            return
        # A test runner cannot drop a database that has an open connection.
        if at_once or in_tests():
            self._wrapper.close()
        else:
            self._wrapper.close_if_unusable_or_obsolete()

    def close_if_obsolete(self) -> None:
        """Close the connection if it is due and not in use."""
        if self.lock.acquire(blocking=False):
            try:
                if self.user is None:
                    self.close_as_due()
            finally:
                self.lock.release()

    def close_before_fork(self, timeout: float) -> None:
        """Close the connection and lock it until the fork is done."""
        self._held_for_fork = self.lock.acquire(timeout=timeout)
        if self._held_for_fork and self.user is None:
            self.close_as_due(at_once=True)

    def go_on_after_fork(self) -> None:
        """Unlock the connection for the parent's threads."""
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
                f"This thread is changing a counter on {alias!r} already, and asked "
                f"for another number in a finalizer (__del__), a receiver of "
                f"connection_created, or a signal handler. Take ids elsewhere."
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
        # After another error, such as an interrupt, an answer may still be on its way.
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
    options.pop("pool", None)  # the caller may have the pool's last connection
    longest = ceil(settings.LOCK_TIMEOUT + settings.RETRY_FOR)
    dialect_of(own).set_own_options(options, longest)
    own.settings_dict["AUTOCOMMIT"] = True
    own.inc_thread_sharing()
    return own


def _switch(own: BaseDatabaseWrapper, schema: str | None) -> None:
    if hasattr(own, "set_schema"):
        # django-tenants sets the search path for each cursor.
        own.set_schema(schema)
    else:
        vars(own)["schema_name"] = schema


def in_tests() -> bool:
    """Whether a test runner has set this process up."""
    # Django's setup_test_environment() adds it, under pytest-django too.
    return hasattr(mail, "outbox")


_own_connections: dict[str, OwnConnection] = {}
_owner = os.getpid()
# Connections that a child inherited, because a thread was using them or no hook saw the
# fork. They are kept, since deleting them would end the parent's session on the socket.
_inherited: list[dict[str, OwnConnection]] = []


def _this_process() -> dict[str, OwnConnection]:
    # uWSGI forks in C and runs none of Python's hooks.
    if _owner != os.getpid():
        after_fork_in_child()
    return _own_connections


def close_obsolete(**kwargs: object) -> None:
    """Close connections that are due (request_started, request_finished)."""
    for own in list(_this_process().values()):
        own.close_if_obsolete()


def before_fork() -> None:
    """Close the process's own connections before a child can inherit them."""
    for own in list(_this_process().values()):
        own.close_before_fork(settings.LOCK_TIMEOUT)


def after_fork_in_parent() -> None:
    """Unlock the own connections."""
    for own in list(_this_process().values()):
        own.go_on_after_fork()


def after_fork_in_child() -> None:
    """Start without connections and with new locks."""
    global _own_connections, _owner
    _inherited.append(_own_connections)
    _own_connections = {}
    _owner = os.getpid()
