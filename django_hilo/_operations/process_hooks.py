"""Hooks of a process: its exit, forks, ends of requests, and migrations."""

import atexit
import logging
import os
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from django.core.signals import request_finished, request_started, setting_changed
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate, pre_save

from django_hilo import generator, models
from django_hilo._allocation import memory
from django_hilo._allocation.find import resolve
from django_hilo._allocation.in_tests import write_counters
from django_hilo._database import own_connection
from django_hilo._database.dialects import dialect_of
from django_hilo._database.which_connection import use_own
from django_hilo._late_rows import writers
from django_hilo.conf import settings
from django_hilo.counters import floor, gapless
from django_hilo.signals import counter_changed, range_reserved, range_returned

logger = logging.getLogger("django_hilo")

# Seconds that the end of a process waits for all returns.
_LONGEST_END = 2

# Ours, and those of Django that this package listens to: where nobody listens to a
# signal, Django sends it without taking its lock.
_SIGNALS = (
    *(range_reserved, range_returned, counter_changed),
    *(connection_created, pre_save, pre_migrate, post_migrate),
    *(request_started, request_finished, setting_changed),
)

_armed = False
_joined: list[ModuleType] = []


def arm(sender: Any) -> None:
    """Connect the hooks; ``sender`` is django-hilo's AppConfig. No I/O."""
    global _armed
    writers[:] = [write_counters]
    uid = "django_hilo.write_counters"
    for model in models.HiLoDocument, models.ServerPrefix:
        pre_save.connect(write_counters, model, dispatch_uid=uid)
    pre_save.connect(floor.guard_save, models.HiLoDocument, dispatch_uid="django_hilo")
    pre_save.connect(
        gapless.guard_save, models.GaplessCounter, dispatch_uid="django_hilo"
    )
    pre_migrate.connect(check_plan, sender, dispatch_uid="django_hilo")
    post_migrate.connect(forget_after_flush, sender, dispatch_uid="django_hilo")
    uid = "django_hilo.raise_defaults"
    post_migrate.connect(raise_defaults, sender, dispatch_uid=uid)
    request_finished.connect(own_connection.close_unused, dispatch_uid="django_hilo")
    _join_worker_pools()
    if not _armed:
        _armed = True
        atexit.register(end_process)
        os.register_at_fork(
            before=before_fork,
            after_in_parent=own_connection.after_fork_in_parent,
            after_in_child=after_fork_in_child,
        )


def end_process(*args: Any, **kwargs: Any) -> None:
    """Return the ranges of this process, and wait 2 seconds at most.

    In a thread, because no driver bounds each wait for a server that stands still.
    """
    mine = connections.all(initialized_only=True)
    for connection in mine:
        connection.inc_thread_sharing()
    try:
        # Made here, too: isolated subinterpreters have no daemons.
        thread = threading.Thread(target=_return, args=[mine], name="hilo", daemon=True)
        thread.start()
    except RuntimeError:  # Python 3.12.0 to 3.12.2 start no thread at the end
        _return_within_bounds(mine)
        return
    thread.join(_LONGEST_END)
    if thread.is_alive():
        logger.warning(
            "Not all unused numbers were returned within %g s; they become a gap.",
            _LONGEST_END,
        )


def _return_within_bounds(mine: Sequence[BaseDatabaseWrapper]) -> None:
    """Return the ranges in this thread, where only a driver bounds each wait."""
    settings.LOCK_TIMEOUT = settings.RETRY_FOR = _LONGEST_END / 2
    own_connection.close_unused()  # a new one has these bounds
    for alias in {each.database.alias for each in memory.current().memories()}:
        if not dialect_of(connections[alias]).has_one_writer:
            use_own(alias)
    _return(mine)


def _return(callers: Sequence[BaseDatabaseWrapper]) -> None:
    """Return the ranges over the connections of the thread that ends the process."""
    for connection in callers:
        connections[connection.alias] = connection
    generator.return_ranges()
    for connection in connections.all(initialized_only=True):
        if connection not in callers:
            connection.close()


def before_fork() -> None:
    """Leave a child nothing to share, and make sure that its exit is noticed."""
    _join_worker_pools()
    own_connection.before_fork()


def after_fork_in_child() -> None:
    """Start with an empty pool, without connections, with new locks."""
    memory.after_fork_in_child()
    own_connection.after_fork_in_child()
    for signal in _SIGNALS:
        # A thread of the parent may have been sending.
        signal.lock = threading.Lock()


def check_plan(plan: Any, apps: Any, using: str, **kwargs: Any) -> None:
    """Refuse to change keys of rows by a plain AlterField (pre_migrate)."""
    # Not above: only a process that migrates needs it.
    from django_hilo.moving import altered_keys

    altered_keys.check_plan(plan, apps, using)


def forget_after_flush(using: str, **kwargs: Any) -> None:
    """Forget the ranges of a database whose counters were flushed (post_migrate).

    Django flushes between the tests of a TransactionTestCase. Only ``migrate``, which
    leaves the counters alone, sends a plan.
    """
    if "plan" not in kwargs:
        memory.current().forget(using)


def raise_defaults(using: str, **kwargs: Any) -> None:
    """Raise the AUTOINCREMENT of SQLite's tables above all ranges (post_migrate).

    SQLite copies a table to alter it, and its numbering then goes on after the rows,
    though processes have reserved higher ranges.
    """
    # Not above: only a process that migrates needs these.
    from django_hilo._operations.locations import fields_on
    from django_hilo.counters.own import ColumnSource

    connection = connections[using]
    if not dialect_of(connection).raises_key_default or not kwargs.get("plan"):
        return
    if models.HiLoDocument._meta.db_table not in connection.introspection.table_names():
        return
    for field in fields_on(using):
        counter = resolve(field, using)
        if isinstance(counter.source, ColumnSource):
            counter.source.raise_default(counter.using)


def _join_worker_pools() -> None:
    """Hook in where children end without running ``atexit``."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and util not in _joined:
        _joined.append(util)
        util.register_after_fork(util, _finalize_child)
    celery_signals = sys.modules.get("celery.signals")
    if celery_signals is not None and celery_signals not in _joined:
        _joined.append(celery_signals)
        celery_signals.worker_process_shutdown.connect(
            end_process, weak=False, dispatch_uid="django_hilo"
        )


def _finalize_child(util: Any) -> None:
    util.Finalize(None, end_process, exitpriority=0)
