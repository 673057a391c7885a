"""The one extra connection that a process opens to an alias, for its counters.

It is closed as ``CONN_MAX_AGE`` says, always in tests, and before a fork.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.core import mail
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, NestedReservation, ReservationTimeout

# In messages, because each of them may come of a pool that is too small.
POOL_SIZE = (
    "A pooler such as PgBouncer needs a session for each thread, and one more for each "
    "process."
)


class OwnConnection:
    """The extra connection to one alias; one thread uses it at a time, by `UseOwn`."""

    def __init__(self, alias: str) -> None:
        self.alias = f"{alias}:hilo"
        self.user: int | None = None  # the thread that uses it
        # An RLock, because no other thread can release it.
        self.lock = threading.RLock()
        self._wrapper: BaseDatabaseWrapper | None = None
        self._opened_for: list[Any] = []

    def open(self, callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        """Return the connection, switched to the caller's database and schema."""
        server = [callers.settings_dict[part] for part in ("NAME", "HOST", "PORT")]
        if self._wrapper is None or self._opened_for != server:
            if self._wrapper is not None:
                self._wrapper.close()
            self._wrapper = None
            self._wrapper, self._opened_for = _copy(callers), server
        switch(self._wrapper, getattr(callers, "schema_name", None))
        return self._wrapper

    def close_as_due(self, at_once: bool = False) -> None:
        """Close the connection if ``CONN_MAX_AGE`` is over, or at once."""
        if self._wrapper is None:
            return
        # A test runner cannot drop a database that has an open connection.
        if at_once or in_tests():
            self._wrapper.close()
            if self._wrapper.in_atomic_block:
                # An interrupt left Django's wrapper inside a transaction for good.
                self._wrapper = None
        else:
            self._wrapper.close_if_unusable_or_obsolete()


@dataclass
class UseOwn:
    """A `with` block that uses the own connection, and yields its alias.

    Waits ``timeout`` seconds for other threads, else raises `ReservationTimeout`. A
    thread that uses the connection already would wait for itself, and gets
    `NestedReservation` at once.
    """

    own: OwnConnection
    callers: BaseDatabaseWrapper
    timeout: float
    _is_open: bool = False

    def __enter__(self) -> str:
        own, alias = self.own, self.callers.alias
        if own.user == threading.get_ident():
            raise NestedReservation(
                f"This thread is changing a counter on {alias!r} already, and asked "
                f"for another number in a finalizer (__del__), a receiver of "
                f"connection_created, or a signal handler. Take ids elsewhere."
            )
        # A signal's handler may raise after any call.
        self._is_open = True
        try:
            if not own.lock.acquire(timeout=self.timeout):
                raise ReservationTimeout(
                    f"The connection that reserves ranges on {alias!r} was busy for "
                    f"{self.timeout:g} s. Look for a transaction that holds the row "
                    f"of a HiLoDocument, or raise HILO['LOCK_TIMEOUT']. {POOL_SIZE}"
                )
            own.user = threading.get_ident()
            connections[own.alias] = own.open(self.callers)
        except BaseException:
            self._end(is_sound=True)
            raise
        return own.alias

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        known = classify(error, self.callers) if isinstance(error, Error) else None
        # A standby answers too. After another error, such as an interrupt, an answer
        # may still be on its way.
        is_expected = isinstance(error, Error | HiLoError | None)
        self._end(is_sound=is_expected and known is not ErrorKind.RECONNECT)

    def __del__(self) -> None:
        # A signal's handler may raise before the first line of __exit__() runs.
        self._end(is_sound=False)

    def _end(self, is_sound: bool) -> None:
        if not self._is_open:
            return
        self._is_open = False
        own = self.own
        try:
            if own.user == threading.get_ident():
                try:
                    with suppress(AttributeError):  # it could not be opened
                        del connections[own.alias]
                    if not is_sound or own.user not in _keepers:
                        own.close_as_due(at_once=not is_sound)
                finally:
                    own.user = None
        finally:
            with suppress(RuntimeError):  # it was not acquired
                own.lock.release()


# Threads that are inside `kept_open`.
_keepers: set[int] = set()


@contextmanager
def kept_open() -> Iterator[None]:
    """Keep what this thread opens for a counter open for the next one in the block."""
    _keepers.add(threading.get_ident())
    try:
        yield
    finally:
        _keepers.discard(threading.get_ident())
        close_obsolete()


def _copy(callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    own = callers.copy()
    options = own.settings_dict["OPTIONS"]
    options.pop("pool", None)  # the caller may have the pool's last connection
    # MariaDB waits for a lock in whole seconds, rounded up.
    longest = ceil(settings.LOCK_TIMEOUT) + ceil(settings.RETRY_FOR)
    dialect_of(own).set_own_options(options, longest)
    own.settings_dict["AUTOCOMMIT"] = True
    own.inc_thread_sharing()
    return own


def switch(connection: BaseDatabaseWrapper, schema: str | None) -> None:
    """Switch a connection to a schema, as django-tenants does where it is used."""
    if schema == getattr(connection, "schema_name", None):
        return
    if hasattr(connection, "set_schema"):
        # django-tenants sets the search path for each cursor.
        connection.set_schema(schema)
    else:
        vars(connection)["schema_name"] = schema


def in_tests() -> bool:
    """Whether a test runner has set this process up."""
    # Django's setup_test_environment() adds it, under pytest-django too.
    return hasattr(mail, "outbox")


_own_connections: dict[str, OwnConnection] = {}
_owner = os.getpid()
# Connections that a child inherited, because a thread was using them or no hook saw the
# fork. They are kept, since deleting them would end the parent's session on the socket.
_inherited: list[dict[str, OwnConnection]] = []


def of_this_process() -> dict[str, OwnConnection]:
    """Return the own connections of this process, by alias."""
    # uWSGI forks in C and runs none of Python's hooks.
    if _owner != os.getpid():
        after_fork_in_child()
    return _own_connections


def close_obsolete(**kwargs: object) -> None:
    """Close connections that are due (request_started, request_finished)."""
    for own in list(of_this_process().values()):
        if own.lock.acquire(blocking=False):
            try:
                if own.user is None:
                    own.close_as_due()
            finally:
                own.lock.release()


def before_fork() -> None:
    """Close and lock the own connections, so that no child inherits them."""
    for own in list(of_this_process().values()):
        if own.lock.acquire(timeout=settings.LOCK_TIMEOUT) and own.user is None:
            own.close_as_due(at_once=True)


def after_fork_in_parent() -> None:
    """Unlock the own connections for the parent's threads."""
    for own in list(of_this_process().values()):
        with suppress(RuntimeError):  # another thread did not give it up
            own.lock.release()


def after_fork_in_child() -> None:
    """Start without connections and with new locks."""
    global _own_connections, _owner
    _inherited.append(_own_connections)
    _own_connections, _owner = {}, os.getpid()
