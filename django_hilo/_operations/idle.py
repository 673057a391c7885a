"""Give idle ranges back: after a burst, a process has numbers for days."""

import logging
import time

from django.db import Error

from django_hilo import generator
from django_hilo._allocation import pool
from django_hilo._allocation.capacity import HALVES_OVER
from django_hilo._allocation.pool import Counter
from django_hilo._database.connection import in_callers_transaction
from django_hilo.exceptions import HiLoError

logger = logging.getLogger("django_hilo")

# How many numbers of a counter a process keeps, however slowly it uses them.
KEPT = 4096

_looked_at = 0.0


def return_idle(**kwargs: object) -> None:
    """Return idle ranges, once a minute (request_started, Celery's task_prerun)."""
    global _looked_at
    now = time.monotonic()
    if now - _looked_at < HALVES_OVER:
        return
    _looked_at = now
    for counter in pool.current().counters():
        size, at = counter.capacity.last or (0, None)
        # Longer than the next one would be.
        is_idle = size > KEPT and at is not None and now - at > HALVES_OVER
        if is_idle and not in_callers_transaction(counter.key.database.alias):
            _return(counter)


def _return(counter: Counter) -> None:
    last = counter.capacity.last
    ranges = counter.drain()
    try:
        is_long = ranges and ranges[-1].left > KEPT
        if is_long and generator.give_back(counter, ranges[-1]):
            ranges.pop()
            # The next one is short; they grow again if the next burst comes.
            last = None
    except (Error, HiLoError) as error:
        # It may have been returned, so nobody may use its numbers.
        ranges.pop()
        alias = counter.key.database.alias
        logger.warning("Unused numbers on %r become a gap: %s", alias, error)
    # It is kept if another process has reserved a range since then.
    counter.add(ranges, 0)
    counter.capacity.last = last
