"""Return what a burst has left over, when a request has ended.

After a burst a process holds up to MAX_CAPACITY numbers. By RavenDB's rule its next
range is smaller, but a quiet process needs that one only after days.
"""

import logging
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from django.db import connections

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._allocation.memory import Memory
from django_hilo._allocation.registry import fields_of
from django_hilo._database.dialects import dialect_of
from django_hilo._database.identity import in_schema, is_still_there
from django_hilo._database.own_connection import close_unused, is_test_process
from django_hilo._database.retry import retry, short_transaction
from django_hilo._database.which_connection import use_own
from django_hilo.conf import settings
from django_hilo.counters.own import OwnCounter
from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import counter_key
from django_hilo.models import HiLoDocument

logger = logging.getLogger("django_hilo")

# How many numbers a counter keeps, and the seconds between looks.
KEPT = 4_096
IDLE_AFTER = 300.0

_next_look = 0.0
# What was larger than that at the last look.
_large: dict[Memory, CachedRange] = {}


def return_idle(**kwargs: object) -> None:
    """Return most of the ranges that lasted from look to look (request_finished).

    A counter keeps the next `KEPT` numbers, or CAPACITY if that is more, so that hardly
    a request waits for a range because of this. Other systems' counters keep all.
    """
    global _next_look, _large
    now = time.monotonic()
    if now < _next_look:
        return
    _next_look, before = now + IDLE_AFTER, _large
    counters = memory.current().memories()
    ranges = {c: c.newest for c in counters if isinstance(c.source, OwnCounter)}
    _large = {each: held for each, held in ranges.items() if held and held.left > KEPT}
    idle = [each for each, held in _large.items() if before.get(each) is held]
    apart = {each for each in idle if _is_on_server(each)}
    _return([each for each in idle if each not in apart])
    if apart:
        # No driver bounds each wait for a server that stands still.
        work = partial(_return_apart, apart)
        with suppress(RuntimeError):  # as in end_process()
            threading.Thread(target=work, name="hilo", daemon=True).start()


def _is_on_server(counter: Memory) -> bool:
    # SQLite's file must not be open in a thread when another one forks, and tests end
    # their transactions and databases.
    database = counter.database
    if is_test_process() or not is_still_there(database):
        return False
    return not dialect_of(connections[database.alias]).has_one_writer


def _return_apart(counters: Iterable[Memory]) -> None:
    try:
        for alias in {each.database.alias for each in counters}:
            use_own(alias)
        _return(counters)
    finally:
        close_unused()
        connections.close_all()


def _return(counters: Iterable[Memory]) -> None:
    failed = set()
    for counter in counters:
        database = counter.database
        if database in failed or not is_still_there(database):
            continue
        connection = connections[database.alias]
        was_closed = connection.connection is None
        try:
            with in_schema(database.alias, database.schema):
                _return_most(counter, database.alias)
        except Exception as error:  # noqa: BLE001 - nobody asked for it
            failed.add(database)
            logger.warning(
                "Idle numbers of %r on %r were not returned: %s",
                *(counter.key[1], database.alias, error),
            )
        finally:
            if was_closed:
                connection.close()


def _return_most(counter: Memory, alias: str) -> None:
    fields = fields_of(counter.key[1])
    keep = max([KEPT, settings.CAPACITY, *(each.capacity or 0 for each in fields)])
    source, newest = counter.source, counter.newest
    if not newest or newest.left <= keep or not isinstance(source, OwnCounter):
        return
    # A range in use is better than a gap, if others have changed the counter since.
    look = partial(_is_unchanged, newest.reservation)
    can_return = retry(look, alias, source.name, retry_for=1)
    # Code that was called meanwhile may have forked, and the range is the parent's.
    if not can_return or memory.current().memory(counter.key) is not counter:
        return
    unused = counter.shrink(newest, keep)
    if unused is None:
        return
    # The next range is as large.
    counter.capacity.note(keep)
    counter.capacity.keep()
    if source.give_back(alias, unused.reservation, unused.next - 1):
        counter.returned(unused)


def _is_unchanged(reserved: Reservation, db: str) -> bool:
    key = counter_key(reserved.collection, reserved.node_tag)
    rows = HiLoDocument.objects.using(db).filter(pk=key)
    with short_transaction(db):
        return rows.filter(max=reserved.range.high, ticket=reserved.ticket).exists()
