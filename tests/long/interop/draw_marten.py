"""Takes numbers from mt_get_next_hi() as Marten does; it speaks as mixing.py says."""

import sys
import time

import psycopg

from tests.long.interop.pace import draw
from tests.support.patience import PATIENCE

connection = psycopg.connect(autocommit=True)
left: list[int] = []


def number(i: int) -> int:
    if not left:
        hi = advance()
        left[:] = range((hi + 1) * max_lo, hi * max_lo, -1)
    return left.pop()


def advance() -> int:
    """Ask again while others are faster.

    Marten raises an error after MaxAdvanceToNextHiAttempts (30) of them, and its caller
    begins anew: six processes with blocks of 10 are more than it was made for.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        row = connection.execute("SELECT mt_get_next_hi(%s)", [entity]).fetchone()
        assert row
        if row[0] >= 0:
            return int(row[0])
    raise RuntimeError(f"No hi in {PATIENCE} s.")


for line in sys.stdin:
    task, *words = line.split()
    try:
        if task == "open":
            entity, max_lo = words[0], int(words[1].removeprefix("max_lo="))
        else:
            draw(number, *words)
        print("done", flush=True)
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
