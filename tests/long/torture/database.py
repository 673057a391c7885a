"""The database of a run: made before it, dropped after it, whatever happens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import django
from django.db import OperationalError, connection

from tests.support.patience import PATIENCE


@contextmanager
def own_database() -> Iterator[str]:
    """Make a database with all tables, and give its name."""
    django.setup()
    before = str(connection.settings_dict["NAME"])
    name = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        if connection.vendor == "sqlite":
            _use_wal()
        connection.close()
        yield str(name)
    finally:
        _drop(before)


def _use_wal() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=WAL")
        assert cursor.fetchone() == ("wal",)


def _drop(before: str) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            connection.creation.destroy_test_db(before, verbosity=0)
        except OperationalError:
            # PostgreSQL still counts the sessions of processes that have just ended.
            if time.monotonic() > give_up_at:
                raise
            time.sleep(1)
        else:
            return
