"""How long a process waits for a range behind another's open transaction.

Starts ``python -m tests.stress.latency holder|taker``.
"""

from __future__ import annotations

import sys
import time

from tests.patience import PATIENCE
from tests.stress import roles
from tests.stress.report import show

ROUNDS = 5
LONGEST = 0.1
CAPACITY = 32
PROFILE = {
    "hilo": {"CAPACITY": CAPACITY, "MAX_CAPACITY": CAPACITY},
    "conn_max_age": None,
}


def measure(database: str) -> list[str]:
    """Measure and print; return what is wrong."""
    took: dict[str, list[float]] = {"outside": [], "inside": []}
    failures = []
    taker = roles.start("stress.latency", "taker", database=database, profile=PROFILE)
    processes = [taker]
    try:
        roles.answer(taker)
        give_up_at = time.monotonic() + PATIENCE
        # Who is scheduled late in one round is not in all of them.
        while (rounds := len(took["inside"])) < ROUNDS or (
            not _are_quick(took) and time.monotonic() < give_up_at
        ):
            for where, seconds in took.items():
                holder = roles.start(
                    "stress.latency", "holder", database=database, profile=PROFILE
                )
                processes.append(holder)
                opened = int(roles.answer(holder)[0])
                start, stop = map(int, roles.ask(taker, where))
                closed = int(roles.ask(holder, "close")[0])
                if not opened < start < stop < closed:
                    failures.append("The range was not taken behind a transaction.")
                seconds.append((stop - start) / 1e9)
                roles.end(holder)
    finally:
        roles.end(*processes)
    show(
        f"Next range behind an open transaction, best and worst of {rounds}",
        {
            f"asked {where} a transaction": f"{min(s):.4f} to {max(s):.4f} s"
            for where, s in took.items()
        },
    )
    if not _are_quick(took):
        failures.append(f"The next range took {max(map(min, took.values())):.3f} s.")
    return failures


def _are_quick(took: dict[str, list[float]]) -> bool:
    return all(min(seconds) < LONGEST for seconds in took.values())


def hold() -> None:
    """Keep a transaction open that took an id, whose range it had to reserve."""
    from django.db import transaction

    from tests.records.models import Order

    with transaction.atomic():
        Order.objects.create(name="held")
        print(time.monotonic_ns(), flush=True)
        sys.stdin.readline()
        closed = time.monotonic_ns()
    print(closed, flush=True)


def take() -> None:
    """Take a range each time that a line comes, and tell from when to when."""
    from contextlib import nullcontext

    from django.db import transaction

    from django_hilo.generator import next_numbers
    from tests.records.models import Order

    blocks = {"outside": nullcontext, "inside": transaction.atomic}
    for block in blocks.values():
        with block():
            next_numbers(Order, CAPACITY + 1)  # opens the connections
    print("ready", flush=True)
    for line in sys.stdin:
        with blocks[line.strip()]():
            start = time.monotonic_ns()
            # More than a range holds: never out of memory, always one reservation.
            next_numbers(Order, CAPACITY + 1)
            stop = time.monotonic_ns()
        print(start, stop, flush=True)


if __name__ == "__main__":
    import django

    django.setup()
    {"holder": hold, "taker": take}[sys.argv[1]]()
