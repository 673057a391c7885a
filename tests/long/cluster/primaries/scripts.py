"""What the tests' pieces of code, each in a process on a node, are written with."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.db import Error, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.counters import next_gapless_number, reserve
from django_hilo.exceptions import ConcurrencyError, ReservationTimeout
from django_hilo.models import HiLoDocument
from tests.long.cluster.worker import Log, code_of
from tests.support.patience import wait_until

__all__ = [
    "ConcurrencyError",
    "Error",
    "HiLoDocument",
    "ReservationTimeout",
    "another_connection",
    "connection",
    "connections",
    "draw",
    "draw_gapless",
    "expect",
    "hilo",
    "hold_row",
    "in_transaction",
    "meet",
    "next_gapless_number",
    "over_rest",
    "reserve",
    "retries",
    "sys",
    "time",
    "wait_until",
]


# The code and the place of each error that was tried again.
retries: list[tuple[str, ...]] = []
# The code and the text of each warning.
warnings: list[tuple[str, ...]] = []
Log(lambda word, *what: {"retry": retries, "warned": warnings}[word].append(what))


def hilo(**changed: Any) -> None:
    """Change settings of HILO."""
    settings.HILO = {**settings.HILO, **changed}


@contextmanager
def expect(kind: type[Exception], codes: str, least: float = 0.0) -> Iterator[None]:
    """Expect an error that comes of a driver's code, no sooner than in so long."""
    started = time.monotonic()
    try:
        yield
    except kind as error:
        assert code_of(error) in codes.split(), repr(error)
        took = time.monotonic() - started
        assert took >= least, took
    else:
        raise AssertionError(f"No {kind.__name__}")


def another_connection(port: str | None = None) -> BaseDatabaseWrapper:
    """Return a connection as a stranger has it, to this node or that of a port."""
    stranger = connection.copy()
    if port is not None:
        stranger.settings_dict["PORT"] = port
    stranger.inc_thread_sharing()
    return stranger


def hold_row(stranger: BaseDatabaseWrapper, key: str) -> None:
    """Lock the row of a counter until the stranger ends its transaction."""
    stranger.set_autocommit(False)
    with stranger.cursor() as cursor:
        cursor.execute(os.environ["SYNC"])  # the row may be very new
        cursor.execute(
            "SELECT max FROM django_hilo_hilodocument WHERE id = %s FOR UPDATE", [key]
        )
        assert cursor.fetchone() is not None, key


def meet(folder: str, processes: int) -> None:
    """Go on when so many processes have come to the folder."""
    connection.ensure_connection()
    (Path(folder) / str(os.getpid())).touch()
    wait_until(lambda: len(list(Path(folder).iterdir())) == processes)


def draw(names: list[str], node_tag: str | None, rounds: int, pause: float) -> None:
    """Reserve ranges of each counter in turn; print what came."""
    ranges = []
    for _ in range(rounds):
        for name in names:
            reserved = reserve(name, 32, node_tag=node_tag)
            key = HiLoDocument.key(name, reserved.node_tag)
            ranges.append((key, reserved.range.low, reserved.range.high, time.time()))
            time.sleep(pause)
    print(json.dumps({"ranges": ranges, "retries": retries}))


def draw_gapless(take: Callable[[str], int], collection: str, seconds: float) -> None:
    """Take gapless numbers for so long; print them, and the errors, as `draw`."""
    ranges, errors = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            number = take(collection)
        except Error as error:
            errors.append((code_of(error), type(error).__name__))
        else:
            ranges.append((collection, number, number, time.time()))
    print(json.dumps({"ranges": ranges, "retries": errors}))


def in_transaction(collection: str) -> int:
    """Take a gapless number in a transaction of the caller's."""
    with transaction.atomic():
        return next_gapless_number(collection)


def over_rest(collection: str) -> int:
    """Take a gapless number over REST; raise what it answers 503 for."""
    from rest_framework.test import APIClient

    allowed = {"is_authenticated": True, "is_active": True, "has_perm": bool}
    client = APIClient()
    client.force_authenticate(SimpleNamespace(**allowed))
    warnings.clear()
    answer = client.post(f"/gapless/{collection}/next/")
    if answer.status_code == 503:
        [(code, _)] = warnings
        raise ConcurrencyError(int(code))
    return answer.json()["number"]
