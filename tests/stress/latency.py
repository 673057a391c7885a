"""How long a process waits for a range behind another's open transaction.

Starts ``python -m tests.stress.latency holder|taker``.
"""

from __future__ import annotations

import sys
import time

from tests.stress import roles
from tests.stress.report import show

ROUNDS = 5
HELD_FOR = 1.0
LONGEST = 0.1
CAPACITY = 32
PROFILE = {
    "hilo": {"CAPACITY": CAPACITY, "MAX_CAPACITY": CAPACITY},
    "conn_max_age": None,
}


def measure(database: str) -> list[str]:
    """Measure and print; return what is wrong."""
    worst = {"outside": 0.0, "inside": 0.0}
    failures = []
    taker = roles.start("stress.latency", "taker", database=database, profile=PROFILE)
    processes = [taker]
    try:
        roles.answer(taker)
        for _ in range(ROUNDS):
            for where, so_far in worst.items():
                holder = roles.start(
                    "stress.latency", "holder", database=database, profile=PROFILE
                )
                processes.append(holder)
                opened = int(roles.answer(holder)[0])
                start, stop = map(int, roles.ask(taker, where))
                closed = int(roles.answer(holder)[0])
                if not opened < start < stop < closed:
                    failures.append("The range was not taken behind a transaction.")
                worst[where] = max(so_far, (stop - start) / 1e9)
    finally:
        roles.end(*processes)
    show(
        f"Next range behind a transaction open for {HELD_FOR:g} s, worst of {ROUNDS}",
        {f"asked {where} a transaction": f"{s:.4f} s" for where, s in worst.items()},
    )
    if max(worst.values()) >= LONGEST:
        failures.append(f"The next range took {max(worst.values()):.3f} s.")
    return failures


def hold() -> None:
    """Keep a transaction open that took an id, whose range it had to reserve."""
    from django.db import transaction

    from tests.records.models import Order

    with transaction.atomic():
        Order.objects.create(name="held")
        print(time.monotonic_ns(), flush=True)
        time.sleep(HELD_FOR)
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
