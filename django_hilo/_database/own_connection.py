"""The one extra connection that a process opens to an alias, for its counters.

A server that is nearly full must not hold one for each process that reserves once a
minute. So it is kept only in a burst of reservations, and closed at the end of a
request, in tests, and before a fork. What a burst leaves open the server closes.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import ceil, inf
from typing import Any, TypeVar

from django.core import mail
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import ErrorKind, classify, dialect_of
from django_hilo._database.dialects.base import POOLED
from django_hilo._database.identity import switch
from django_hilo._lock import Lock
from django_hilo.conf import settings
from django_hilo.exceptions import NestedReservation, ReservationTimeout

Result = TypeVar("Result")

# freezegun freezes time.monotonic(), and each module's name for it.
clock = partial(time.monotonic)

# Seconds. A reservation that begins sooner after the last one is of a burst, whose
# connection is kept; but not for long, since other processes may wait for one.
BURST = 0.5
LONGEST_KEPT = 1.0

# In messages that may come of a pool that is too small.
POOL_SIZE = (
    "If a pooler such as PgBouncer, or the server, limits connections: each thread "
    "needs one, and each process needs one more."
)

# A connection with others is another one.
_SERVER = ["NAME", "HOST", "PORT", "USER", "PASSWORD"]


class OwnConnection:
    """The extra connection to one alias; one thread uses it at a time."""

    def __init__(self, alias: str) -> None:
        self.alias, self._callers = f"{alias}:hilo", alias
        self.lock = Lock()
        self._wrapper: BaseDatabaseWrapper | None = None
        self._opened_for: list[Any] = []
        self._opened = self._ended = -inf

    def hold(self, act: Callable[[], Result], timeout: float) -> Result:
        """Call ``act`` while no other thread uses the connection; return its result.

        Waits ``timeout`` seconds for other threads, else raises `ReservationTimeout`. A
        thread that uses the connection already would wait for itself, and gets
        `NestedReservation` at once.
        """
        if self.lock.is_held_here():
            raise NestedReservation.amid(f"changing a counter on {self._callers!r}")
        try:
            if not self.lock.acquire(timeout=timeout):
                raise ReservationTimeout(
                    f"The connection that reserves ranges on {self._callers!r} was "
                    f"busy for {timeout:g} s. Find the transaction that locks a row of "
                    f"HiLoDocument, or raise HILO['LOCK_TIMEOUT']. {POOL_SIZE}"
                )
            return act()
        finally:
            # A signal's handler may raise after any call, so nothing is called before.
            try:  # noqa: SIM105
                self.lock.release()
            except RuntimeError:  # it was not acquired
                pass

    def run(
        self, operate: Callable[[str], Result], callers: BaseDatabaseWrapper
    ) -> Result:
        """Call ``operate`` with the alias of this connection, which is held."""
        # Not after an error: its rollback may undo a limit of the session, and after an
        # interrupt an answer may still be on its way.
        is_kept, is_burst = False, clock() - self._ended < BURST
        try:
            if not is_burst:
                self.close()  # the server may have closed it, too
            connections[self.alias] = wrapper = self._open(callers)
            result = operate(self.alias)
            self._ended = clock()
            is_kept = is_burst and self._ended - self._opened < LONGEST_KEPT
            is_kept = is_kept and not vars(wrapper).get(POOLED)
            return result
        except Error as error:
            is_locked = classify(error, callers) is ErrorKind.LOCKED
            if is_locked and self._wrapper is not None:
                dialect_of(callers).confirm_locked(self._wrapper)
            raise
        finally:
            with suppress(AttributeError):  # it could not be opened
                del connections[self.alias]
            # A test runner cannot drop a database that has an open connection.
            if not is_kept or is_test_process():
                self.close()

    def _open(self, callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
        """Return the connection, switched to the caller's database and schema."""
        server = [callers.settings_dict[part] for part in _SERVER]
        wrapper = self._wrapper
        is_other = self._opened_for != server
        if wrapper is None or wrapper.connection is None or is_other:
            # With all settings as they are now.
            self.close()
            self._wrapper = wrapper = _copy(callers)
            self._opened_for, self._opened = server, clock()
        switch(wrapper, getattr(callers, "schema_name", None))
        return wrapper

    def close(self) -> None:
        """Close the connection and drop its wrapper, which may be in a transaction."""
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is not None:
            with suppress(Error):  # the driver's is closed already
                wrapper.close()


def _copy(callers: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    own = callers.copy()
    # The caller may have the pool's last connection.
    own.settings_dict["OPTIONS"].pop("pool", None)
    # MariaDB waits for a lock in whole seconds, rounded up.
    longest = ceil(settings.LOCK_TIMEOUT) + ceil(settings.RETRY_FOR)
    dialect_of(own).prepare_own(own, longest)
    own.settings_dict["AUTOCOMMIT"] = True
    own.inc_thread_sharing()
    return own


def is_test_process() -> bool:
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


def close_unused(**kwargs: object) -> None:
    """Close the own connections that no thread is using (request_finished)."""
    for own in list(of_this_process().values()):
        with suppress(ReservationTimeout, NestedReservation):
            own.hold(own.close, timeout=0)


def before_fork() -> None:
    """Close and lock the own connections, so that no child inherits them."""
    for own in list(of_this_process().values()):
        is_used_here = own.lock.is_held_here()
        if own.lock.acquire(timeout=settings.LOCK_TIMEOUT) and not is_used_here:
            own.close()


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
