"""Return what a burst has left over, when a request has ended.

After a burst a process holds up to MAX_CAPACITY numbers. By RavenDB's rule its next
range is smaller, but a quiet process needs that one only after days.
"""

import logging
import time

from django.db import Error, connections

from django_hilo._allocation import pool
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import fields_of
from django_hilo._database.connection import commits_alone, in_schema, is_still_there
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
        size, reserved_at = counter.capacity.last or (0, None)
        keep = _kept_of(counter)
        if size > keep and reserved_at and now > reserved_at + IDLE_AFTER:
            _return_idle(counter, keep)


def _kept_of(counter: Counter) -> int:
    fields = fields_of(counter.key.collection)
    return max([KEPT, settings.CAPACITY, *(each.capacity or 0 for each in fields)])


def _return_idle(counter: Counter, keep: int) -> None:
    source, database = counter.source, counter.key.database
    # Counters of other systems take nothing back.
    if not isinstance(source, OwnCounter) or not is_still_there(database):
        return
    connection, alias = connections[database.alias], database.alias
    if not commits_alone(connection):
        return  # a test's
    try:
        with in_schema(alias, database.schema):
            # If others have reserved since, a range in use is better than a gap.
            if source.read_max(alias) != counter.seen:
                return
            unused = counter.drain(keep)
            counter.capacity.note(keep)  # the next one starts from it
            if unused is None or not unused.left:
                return
            if source.give_back(alias, unused.reservation, unused.next - 1):
                counter.returned(unused)
    except (Error, HiLoError) as error:
        logger.warning("Idle numbers on %r were not returned: %s", alias, error)
    finally:
        connection.close_if_unusable_or_obsolete()  # as Django did before this
