"""Forking a process whose threads are at work.

The children inherit what their parent had open, which they must neither use nor end.
"""

import ctypes
import os
import threading

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.support import journal

# The connections of this process's threads.
_open: list[BaseDatabaseWrapper] = []


class Gate:
    """Where threads stop for a fork that they must not be in the way of."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._waiting = 0

    def pass_through(self) -> None:
        """Wait, without a connection, while the gate is closed."""
        if self._closed:
            connections.close_all()
            with self._changed:
                self._waiting += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._closed)
                self._waiting -= 1

    def close(self, threads: list[threading.Thread]) -> None:
        """Close the gate, and wait until all threads that have not ended are there."""
        with self._changed:
            self._closed = True
            while self._waiting < sum(thread.is_alive() for thread in threads):
                self._changed.wait(timeout=0.1)

    def open(self) -> None:
        """Let the threads go on."""
        with self._changed:
            self._closed = False
            self._changed.notify_all()


def remember_connection() -> None:
    """Note this thread's connection; each thread calls this once, at its start."""
    _open.append(connections[connection.alias])


def fork(gate: Gate, threads: list[threading.Thread], child_seat: int) -> int:
    """Fork, and return what os.fork() returns.

    On the servers the threads are in the midst of their work.
    """
    connections.close_all()
    # A child cannot use an SQLite file that its parent had open: the locks that the
    # library thinks to hold are not inherited (sqlite.org/howtocorrupt.html, 2.6).
    stops = connection.vendor == "sqlite"
    if stops:
        gate.close(threads)
    pid = fork_here(child_seat)
    if pid and stops:
        gate.open()
    return pid


def fork_here(child_seat: int) -> int:
    """Fork, whatever the caller's connection is about; return what os.fork() returns.

    The child must not use the connections that it inherited.
    """
    journal.mine().note("forked", child_seat)
    pid = os.fork()
    if pid == 0:
        _leak(_open)
    return pid


def _leak(inherited: list[BaseDatabaseWrapper]) -> None:
    # mysqlclient ends the session, which the parent is using, when the object goes.
    for wrapper in inherited:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(wrapper))
    inherited.clear()
