"""Let the commit of a reservation wait for PostgreSQL's standbys, for a bounded time.

PostgreSQL bounds this wait by nothing: ``statement_timeout`` is over before it starts.
And a wait that is cancelled ends as a commit does, with a warning and no error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.conf import settings
from django_hilo.exceptions import ReservationTimeout, StandbyMissing

# Levels of HILO["SYNCHRONOUS_COMMIT"] that wait for a standby, and the one that waits
# for the own disk only: that of transactions that reserve nothing.
WITH_STANDBY = ("on", "remote_write", "remote_apply")
LOCAL = "local"

_WAIT = "hilo_wait"
_STANDBYS = "current_setting('synchronous_standby_names')"


def waits(connection: BaseDatabaseWrapper) -> bool:
    """Whether reservations on this connection are to wait for a standby."""
    return (
        connection.vendor == "postgresql"
        and settings.SYNCHRONOUS_COMMIT in WITH_STANDBY
    )


def insist(connection: BaseDatabaseWrapper) -> None:
    """Let the commit of the open `bounded_commit` wait for a standby.

    Raises `StandbyMissing` where ``synchronous_standby_names`` is empty: PostgreSQL
    would commit then as if nothing had been asked for.
    """
    wait: _Wait | None = vars(connection).get(_WAIT)
    if wait is None:
        return
    with connection.cursor() as cursor:
        # The message is there to be waited for: nextval() writes to the log ahead, so
        # that most of its transactions have nothing to send.
        cursor.execute(
            f"SELECT {_STANDBYS}, pg_logical_emit_message(true, 'django_hilo', ''), "
            "set_config('synchronous_commit', %s, true), "
            "set_config('client_min_messages', 'warning', true)",
            [settings.SYNCHRONOUS_COMMIT],
        )
        if not cursor.fetchone()[0].strip():
            raise StandbyMissing(
                f"HILO['SYNCHRONOUS_COMMIT'] is {settings.SYNCHRONOUS_COMMIT!r}, but "
                f"the server of {connection.alias!r} names no standby to wait for. Set "
                f"synchronous_standby_names there, or HILO['SYNCHRONOUS_COMMIT'] = "
                f"None."
            )
    wait.is_needed = True


@contextmanager
def bounded_commit(connection: BaseDatabaseWrapper) -> Iterator[Callable[[], None]]:
    """Give what is to be called right before the commit that ends within the block.

    Where the transaction did `insist`, raises `ReservationTimeout` if no standby
    confirmed that commit within ``HILO["LOCK_TIMEOUT"]``: a failover may undo it.
    """
    if not waits(connection):
        yield _no_wait
        return
    wait = vars(connection)[_WAIT] = _Wait(connection)
    try:
        yield wait.begin
    finally:
        del vars(connection)[_WAIT]
        wait.end()
        if wait.is_unconfirmed:
            # The request to cancel may still be under way.
            connection.close()
    if wait.is_unconfirmed or (wait.has_begun and not _are_standbys_named(connection)):
        raise ReservationTimeout(
            f"No standby confirmed the change of a counter on {connection.alias!r} "
            f"within {settings.LOCK_TIMEOUT:g} s (HILO['LOCK_TIMEOUT']), so numbers "
            f"that it reserved are not used. Look at pg_stat_replication on the "
            f"primary: the standbys of synchronous_standby_names must be connected."
        )


def _no_wait() -> None:
    pass


def _are_standbys_named(connection: BaseDatabaseWrapper) -> bool:
    # Who empties the names lets all that wait go on, with no warning.
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_STANDBYS}")
        return bool(cursor.fetchone()[0].strip())


class _Wait:
    """One commit, on a connection of psycopg 3 or 2."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        # Each kind of connection has its driver there; the base class does not.
        self._error = connection.Database.Error  # type: ignore[attr-defined]
        self._raw: Any = None
        self._timer: threading.Timer | None = None
        self.is_needed = False
        self.is_unconfirmed = False

    @property
    def has_begun(self) -> bool:
        return self._timer is not None

    def begin(self) -> None:
        if not self.is_needed:
            return
        # Not before: Django may replace a connection that it finds dead.
        self._raw = self._connection.connection
        if hasattr(self._raw, "add_notice_handler"):
            self._raw.add_notice_handler(self._note)
        else:
            del self._raw.notices[:]
        timer = threading.Timer(settings.LOCK_TIMEOUT, self._cancel)
        timer.daemon = True
        timer.start()
        self._timer = timer

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if hasattr(self._raw, "remove_notice_handler"):
            self._raw.remove_notice_handler(self._note)
        elif self._raw is not None and self._raw.notices:
            self._note()

    def _note(self, notice: object = None) -> None:
        # Somebody else may cancel the wait, too.
        self.is_unconfirmed = True

    def _cancel(self) -> None:
        self.is_unconfirmed = True
        with suppress(self._error):  # the commit fails then, too
            self._raw.cancel()
