"""Return what a burst has left over, when a request has ended.

After a burst a process holds up to MAX_CAPACITY numbers. By RavenDB's rule its next
range is smaller, but a quiet process needs that one only after days.
"""

import logging
import time

from django.db import Error, close_old_connections

from django_hilo._allocation import pool
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import fields_of
from django_hilo._database.connection import in_schema, is_still_there
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.sources.own import OwnCounter

logger = logging.getLogger("django_hilo")

# How many numbers a counter keeps, and for how many seconds it keeps more.
KEPT = 4_096
IDLE_AFTER = 300.0

_next_look = 0.0


def return_idle(**kwargs: object) -> None:
    """Return what counters hold and hardly use, now and then (request_finished).

    A counter keeps `KEPT` numbers, or CAPACITY if that is more, so that no request
    waits for a range because of this.
    """
    global _next_look
    now = time.monotonic()
    if now < _next_look:
        return
    _next_look = now + IDLE_AFTER
    for counter in pool.current().counters():
        try:
            _return_idle(counter, now)
        except (Error, HiLoError) as error:
            logger.warning(
                "Idle numbers of %s may become a gap: %s", counter.key, error
            )
    close_old_connections()  # as Django does, but before this


def _return_idle(counter: Counter, now: float) -> None:
    fields = fields_of(counter.key.collection)
    keep = max([KEPT, settings.CAPACITY, *(each.capacity or 0 for each in fields)])
    size, reserved_at = counter.capacity.last or (0, None)
    if size <= keep or reserved_at is None or now < reserved_at + IDLE_AFTER:
        return
    source, database = counter.source, counter.key.database
    if not isinstance(source, OwnCounter) or not is_still_there(database):
        return  # Counters of other systems take nothing back.
    alias = database.alias
    with in_schema(alias, database.schema):
        if source.read_max(alias) != counter.seen:
            return  # Others have reserved since; a range in use is better than a gap.
        unused = counter.drain(keep)
        counter.capacity.note(keep)  # the next one starts from it
        if unused is None or not unused.left:
            return
        if source.give_back(alias, unused.reservation, unused.next - 1):
            counter.returned(unused)
