"""How many sessions a server of databases has on the tests' database."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from django.db import connections

from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE, wait_until

# Of each session its client's port, and whether it is the one that asks.
_PORTS = {
    "postgres": "SELECT client_port, pid = pg_backend_pid() FROM pg_stat_activity"
    " WHERE backend_type = 'client backend'"
    " AND (datname = %s OR pid = pg_backend_pid())",
    "mariadb": "SELECT substring_index(host, ':', -1), id = connection_id()"
    " FROM information_schema.processlist WHERE db = %s OR id = connection_id()",
}
_ESTABLISHED = "01"


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
        looking.join(PATIENCE)
    wait_for_sessions(before, database)


def _look(peak: Peak, database: str, before: int, over: threading.Event) -> None:
    with connections["default"].creation._nodb_cursor() as cursor:
        while not over.wait(0.005):
            if len(_ports(cursor, database)[0]) - before > peak.sessions:
                found = _count(cursor, database) - before
                peak.sessions = max(peak.sessions, found)


def sessions(database: str = "") -> int:
    """Count the sessions on a database, that of the tests by itself."""
    with connections["default"].creation._nodb_cursor() as cursor:
        return _count(cursor, database)


def wait_for_sessions(expected: int, database: str = "") -> None:
    """Wait until no more are left: a server needs a moment to notice an end.

    Fewer may be: one of a test before was still ending when they were counted.
    """
    with connections["default"].creation._nodb_cursor() as cursor:
        wait_until(
            lambda: len(_ports(cursor, database)[0]) <= expected,
            lambda: f"{sessions(database)} sessions, not {expected}",
        )


def _count(cursor, database: str) -> int:
    """Count those whose client is there: a busy server ends the others late."""
    ports, own = _ports(cursor, database)
    connected = _connected_ports()
    if own not in connected:  # the server is not reached by TCP, or through a proxy
        return len(ports)
    return len(connected.intersection(ports))


def _ports(cursor, database: str) -> tuple[list[int], int]:
    """Return the clients' ports of all sessions on a database, and the cursor's own."""
    name = database or connections["default"].settings_dict["NAME"]
    cursor.execute(_PORTS[CHOSEN], [name])
    rows = cursor.fetchall()
    # MariaDB's host is a word where it is not reached by TCP.
    ports = [int(port) if str(port).isdigit() else -1 for port, _ in rows]
    owned = [is_own for _, is_own in rows]
    (own,) = compress(ports, owned)
    return [port for port, is_own in zip(ports, owned, strict=True) if not is_own], own


def _connected_ports() -> set[int]:
    """Return this machine's ports of connections that neither end has closed."""
    found = set()
    for file in Path("/proc/net/tcp"), Path("/proc/net/tcp6"):
        for line in file.read_text().splitlines()[1:] if file.exists() else []:
            _, local, _, state, *_ = line.split()
            if state == _ESTABLISHED:
                found.add(int(local.rpartition(":")[2], 16))
    return found
