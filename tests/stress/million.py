"""How many reservations a million ids cost in one process.

Starts ``python -m tests.stress.million``.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from unittest.mock import patch

from tests.stress import roles
from tests.stress.report import show

IDS = 1_000_000
MOST = 30


def measure(database: str) -> list[str]:
    """Measure and print; return what is wrong."""
    process = roles.start("stress.million", database=database, profile={})
    try:
        reservations, distinct, seconds = roles.answer(process)
    finally:
        roles.end(process)
    show(
        f"{IDS:,} ids in one process",
        {"distinct": int(distinct), "reservations": int(reservations), "s": seconds},
    )
    failures = []
    if int(reservations) > MOST:
        failures.append(f"{IDS:,} ids cost {reservations} reservations.")
    if int(distinct) != IDS:
        failures.append(f"{IDS:,} ids, but {distinct} distinct ones.")
    return failures


def take() -> None:
    """Take the ids, one by one."""
    from django_hilo.generator import next_id
    from django_hilo.signals import range_reserved

    reserved = []

    def count(**kwargs: object) -> None:
        reserved.append(kwargs)

    range_reserved.connect(count)
    start = time.monotonic()
    # On a busy machine the long ranges would last too long to be doubled.
    with patch("django_hilo.pace.time", SimpleNamespace(monotonic=lambda: 0.0)):
        ids = [next_id("millions") for _ in range(IDS)]
    seconds = time.monotonic() - start
    print(len(reserved), len(set(ids)), f"{seconds:.2f}", flush=True)


if __name__ == "__main__":
    import django

    django.setup()
    take()
