"""How many sessions a server of databases has on the tests' database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connections

from tests.databases import CHOSEN

_COUNT = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname = %s",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE db = %s",
}


@dataclass
class Peak:
    """The most sessions that were seen at once, over those that were there before."""

    sessions: int = 0


@contextmanager
def counting(database: str = "") -> Iterator[Peak]:
    """Look all the time while the block runs; then wait until all new ones are gone.

    At the sessions on a database, that of the tests by itself.
    """
    peak = Peak()
    if CHOSEN == "sqlite":
        yield peak
        return
    connections["default"].ensure_connection()
    before, over = sessions(database), threading.Event()
    looking = threading.Thread(target=_look, args=(peak, database, before, over))
    looking.start()
    try:
        yield peak
    finally:
        over.set()
        looking.join(30)
    wait_for_sessions(before, database)


def _look(peak: Peak, database: str, before: int, over: threading.Event) -> None:
    with connections["default"].creation._nodb_cursor() as cursor:
        while not over.wait(0.005):
            peak.sessions = max(peak.sessions, _count(cursor, database) - before)


def sessions(database: str = "") -> int:
    """Count the sessions on a database, that of the tests by itself."""
    with connections["default"].creation._nodb_cursor() as cursor:
        return _count(cursor, database)


def wait_for_sessions(expected: int, database: str = "") -> None:
    """Wait until no more are left: a server needs a moment to notice an end.

    Fewer may be: one of a test before was still ending when they were counted.
    """
    give_up = time.monotonic() + 30
    while (found := sessions(database)) > expected:
        assert time.monotonic() < give_up, f"{found} sessions, not {expected}"
        time.sleep(0.02)  # the server is still ending them


def _count(cursor, database: str) -> int:
    name = database or connections["default"].settings_dict["NAME"]
    cursor.execute(_COUNT[CHOSEN], [name])
    return cursor.fetchone()[0]
