"""How long tests wait for what must come; slowness is no failure.

A wait is over when that comes: these bounds only end what hangs.
"""

import time
from collections.abc import Callable
from typing import TypeVar

# Seconds for one thing to come: a start, an end, an answer, a lock.
PATIENCE = 180
# ... and for all that a process does; it may wait itself.
LONGEST = 480
# Of HILO, where a test is about neither: processes hold a row for as long as a busy
# machine lets them wait, or less.
PATIENT = {"LOCK_TIMEOUT": 60, "RETRY_FOR": 120}

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found],
    told: Callable[[], object] = str,
    *,
    pause: float = 0.02,
) -> Found:
    """Ask again and again until it is so; return what it gave then.

    ``told`` gives what a failure is to tell.
    """
    give_up_at = time.monotonic() + PATIENCE
    while True:
        late = time.monotonic() > give_up_at
        if found := condition():
            return found
        assert not late, f"Not in {PATIENCE} s: {told()}"
        time.sleep(pause)
