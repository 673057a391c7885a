"""The next range, fetched in the background before the numbers are used up."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import connections

from django_hilo.connections import use_own
from django_hilo.pool import Counter
from django_hilo.refills import refill_as
from django_hilo.targets import Target

logger = logging.getLogger("django_hilo")


def prefetch(target: Target, counter: Counter) -> None:
    """Let a thread fetch the next range, once for each range.

    Who runs out of numbers meanwhile waits for it, and so does the end of the process:
    the range goes back.
    """
    mine: Future[None] = Future()
    try:
        if counter.begin_ahead(mine):
            _worker(target.using).submit(_fetch, mine, target, counter)
    except RuntimeError:  # the interpreter is ending
        counter.end_refill(mine)
    except BaseException:
        counter.end_refill(mine)
        raise


def _worker(using: str) -> ThreadPoolExecutor:
    # One thread, as there is one connection of the process's own to work on. It stays:
    # who asks for an id would wait for the start of another, but not for this one.
    key = os.getpid(), using  # no child of a fork has its parent's threads
    worker = _workers.get(key)
    if worker is None:
        new = ThreadPoolExecutor(1, thread_name_prefix=f"hilo {using}")
        worker = _workers.setdefault(key, new)
    return worker


def _fetch(mine: Future[None], target: Target, counter: Counter) -> None:
    try:
        with use_own(target.using):
            refill_as(mine, target, counter, 0)
    except Exception as error:  # noqa: BLE001 - nobody asked yet
        logger.warning(
            "The next range of %r on %r could not be fetched ahead: %s",
            target.name,
            target.using,
            error,
        )
    finally:
        counter.end_refill(mine)
        connections.close_all()


_workers: dict[tuple[int, str], ThreadPoolExecutor] = {}
