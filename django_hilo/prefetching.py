"""The next range, fetched in the background before the numbers are used up."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future

from django.db import connections

from django_hilo.connections import use_own
from django_hilo.pool import Counter
from django_hilo.refills import refill_as
from django_hilo.targets import Target

logger = logging.getLogger("django_hilo")


def prefetch(target: Target, counter: Counter) -> None:
    """Fetch the next range in a thread, once for each range.

    Who runs out of numbers meanwhile waits for it. No daemon: the end of the process
    waits too, so that the range goes back.
    """
    mine: Future[None] = Future()
    try:
        if counter.begin_ahead(mine):
            threading.Thread(
                target=_fetch, args=(mine, target, counter), name=f"hilo {target.name}"
            ).start()
    except RuntimeError:  # the interpreter is ending
        counter.end_refill(mine)
    except BaseException:
        counter.end_refill(mine)
        raise


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
