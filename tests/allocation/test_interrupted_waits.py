"""A signal's handler may raise at any line of a wait for another thread's reservation.

Celery's time limits do so, and Ctrl-C.
"""

import sys
import threading
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from django_hilo._allocation import memory, refill
from django_hilo._allocation.memory import Refill
from django_hilo.counters import reservation
from django_hilo.exceptions import ReservationTimeout
from django_hilo.generator import next_number
from tests.support.patience import PATIENCE, wait_until
from tests.support.threads import begin, in_thread


class Interrupt(Exception):
    pass


def interrupted(work, function, at):
    """Run something; raise at this line of all that run in a function and below it."""
    lines_left = at

    def trace(frame, event, argument):
        nonlocal lines_left
        caller = frame
        while caller and caller.f_code is not function.__code__:
            caller = caller.f_back
        if caller is None:
            return None
        lines_left -= event == "line"
        if lines_left < 0:
            raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    finally:
        sys.settrace(before)


@pytest.mark.django_db(transaction=True)
def test_nobody_hangs_after_a_wait_that_is_interrupted(monkeypatch):
    # For the wait alone, which ends by itself where nothing interrupts it.
    short = SimpleNamespace(LOCK_TIMEOUT=0.01, RETRY_FOR=0.01)
    monkeypatch.setattr(refill, "settings", short)
    # What hangs must not hang the end of the test, too.
    monkeypatch.setattr(memory, "_pool", memory.Pool())
    reserve_range = reservation.reserve_range

    def held(*args, **kwargs):
        inside.set()
        go_on.wait(PATIENCE)
        return reserve_range(*args, **kwargs)

    monkeypatch.setattr(reservation, "reserve_range", held)
    for at in count():
        inside, go_on = threading.Event(), threading.Event()
        take = partial(next_number, f"line-{at}")
        first = begin(take)
        inside.wait(PATIENCE)
        # The first thread reserves until the wait is over.
        with pytest.raises((Interrupt, ReservationTimeout)) as error:
            in_thread(partial(interrupted, take, refill._wait, at))
        go_on.set()
        assert (first(), in_thread(take)) == (1, 2)
        if error.type is ReservationTimeout:
            break
    assert at > 10


def test_an_end_that_is_interrupted_and_repeated_wakes_those_who_wait():
    for at in count():
        reserving = Refill()
        waits = [begin(partial(reserving.wait, PATIENCE)) for _ in range(2)]
        wait_until(lambda: len(reserving._waiting) == 2)  # noqa: B023 - called now
        try:
            interrupted(reserving.end, Refill.end, at)
            break
        except Interrupt:
            reserving.end()
            assert [wait() for wait in waits] == [True, True]
    assert at > 5
