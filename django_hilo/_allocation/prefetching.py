"""The next range, fetched in the background before the numbers are used up."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue

from django.db import connections

from django_hilo._allocation.pool import Counter
from django_hilo._allocation.refill import refill_as
from django_hilo._allocation.target import Target
from django_hilo._database.connection import database_key, use_own

logger = logging.getLogger("django_hilo")

Job = tuple[Future[None], Target, Counter]


def prefetch(target: Target, counter: Counter) -> None:
    """Let a thread fetch the next range, once for each range.

    Who runs out of numbers meanwhile waits for it, and so does `return_ranges`, which
    the end of the process calls.
    """
    mine = _future()
    try:
        if counter.begin_ahead(mine):
            _idle_thread().put((mine, target, counter))
            return
    except RuntimeError:  # the interpreter is ending
        counter.end_refill(mine)
    except BaseException:
        counter.end_refill(mine)
        raise
    if not mine.done():
        _futures.append(mine)


def _future() -> Future[None]:
    """Return a new one: made before, as it takes as long as all else here."""
    try:
        return _futures.pop()
    except IndexError:
        return Future()


def after_fork_in_child() -> None:
    """Start without the parent's threads."""
    global _idle, _owner
    _idle, _owner = deque(), os.getpid()


def _idle_thread() -> SimpleQueue[Job]:
    """Return what a thread with nothing to do waits at.

    Threads stay: who asks for an id would wait for the start of one as long as for a
    range. They are daemons, so that one whose start a signal's handler broke off, which
    nobody knows of, keeps no process from ending.
    """
    if _owner != os.getpid():
        after_fork_in_child()
    try:
        return _idle.pop()
    except IndexError:
        jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(
            target=_work, args=(jobs, _idle), name="hilo", daemon=True
        ).start()
        return jobs


def _work(jobs: SimpleQueue[Job], idle: deque[SimpleQueue[Job]]) -> None:
    while True:
        _fetch(*jobs.get())
        _futures.append(Future())
        idle.append(jobs)


def _fetch(mine: Future[None], target: Target, counter: Counter) -> None:
    try:
        # Meanwhile the alias may have become that of another database.
        if database_key(target.using) == counter.key.database:
            with use_own(target.using):
                refill_as(mine, target, counter, 0)
                counter.cut_ahead()
    except Exception as error:  # noqa: BLE001 - nobody asked yet
        logger.warning(
            "The next range of %r on %r could not be fetched ahead: %s",
            target.name,
            target.using,
            error,
        )
    finally:
        counter.end_refill(mine)
        # Not only closed: the next one is to have the settings of its time.
        for connection in connections.all(initialized_only=True):
            connection.close()
            del connections[connection.alias]


_idle: deque[SimpleQueue[Job]] = deque()
# Nobody waits for one of these yet.
_futures: deque[Future[None]] = deque()
_owner = os.getpid()
