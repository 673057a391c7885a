"""Return what a burst has left over, when a request has ended.

After a burst a process holds up to MAX_CAPACITY numbers. By RavenDB's rule its next
range is smaller, but a quiet process needs that one only after days.
"""

import logging
import time
from functools import partial

from django.db import connections

from django_hilo._allocation import pool
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import fields_of
from django_hilo._database.connection import (
    in_schema,
    is_still_there,
    retry,
    short_transaction,
)
from django_hilo.conf import settings
from django_hilo.sources.own import OwnCounter

logger = logging.getLogger("django_hilo")

# How many numbers a counter keeps, and for how many seconds it keeps more.
KEPT = 4_096
IDLE_AFTER = 300.0

_next_look = 0.0


def return_idle(**kwargs: object) -> None:
    """Return the numbers that a counter holds and hardly uses (request_finished).

    The counter keeps `KEPT` of them, or CAPACITY if that is more, so that the next
    requests need no range. Each request looks after one counter; when there is none,
    the next look is after `IDLE_AFTER` seconds.
    """
    global _next_look
    now = time.monotonic()
    if now < _next_look:
        return
    _next_look = now + IDLE_AFTER
    try:
        if _return_of_one(now):
            _next_look = now
    except Exception as error:  # noqa: BLE001 - the response was sent already
        logger.warning("Idle numbers were not returned: %s", error)


def _return_of_one(now: float) -> bool:
    """Return the numbers of one counter; False if all are in use."""
    for counter in pool.current().counters():
        size, reserved_at = counter.capacity.last or (0, None)
        is_old = reserved_at is not None and now > reserved_at + IDLE_AFTER
        if is_old and size > (keep := _kept_of(counter)):
            # By RavenDB's rule. Nobody looks at it again before it is old.
            counter.capacity.note(max(size // 2, keep))
            _return(counter, keep)
            return True
    return False


def _kept_of(counter: Counter) -> int:
    fields = fields_of(counter.key.collection)
    return max([KEPT, settings.CAPACITY, *(each.capacity or 0 for each in fields)])


def _return(counter: Counter, keep: int) -> None:
    source, database = counter.source, counter.key.database
    # Counters of other systems take nothing back.
    if not isinstance(source, OwnCounter) or not is_still_there(database):
        return
    alias, connection = database.alias, connections[database.alias]
    was_closed = connection.connection is None
    try:
        with in_schema(alias, database.schema):
            stored = retry(partial(_read_max, source), alias, source.name, retry_for=1)
            # If others have reserved since, a range in use is better than a gap. Code
            # that was called meanwhile may have forked, and the range is the parent's.
            is_ours = pool.current().counter(counter.key) is counter
            if stored != counter.seen or not is_ours:
                return
            unused = counter.shrink(keep)
            if unused and source.give_back(alias, unused.reservation, unused.next - 1):
                counter.returned(unused)
    finally:
        if was_closed:
            connection.close_if_unusable_or_obsolete()


def _read_max(source: OwnCounter, db: str) -> int:
    with short_transaction(db):
        return source.read_max(db)
