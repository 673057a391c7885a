"""How many reservations ids cost, and what one costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from sequences import get_next_value

from benchmarks.bench import Bench
from benchmarks.databases import TITLES
from benchmarks.results import Finding, Result, compared
from benchmarks.rounds import Figures, Spread, interleaved, seconds_of
from benchmarks.statements import BULK
from django_hilo.counters import reserve
from django_hilo.generator import iter_ids, next_ids
from django_hilo.signals import range_reserved

MILLION = 1_000_000
# Calls in a turn.
CALLS = 20


def measure(bench: Bench) -> Iterator[Finding]:
    """Count reservations, and time one beside django-sequences."""
    yield from counts(bench)
    for alias in bench.aliases:
        yield from durations(bench, alias, TITLES[alias])


def counts(bench: Bench) -> Iterator[Result]:
    """Count the reservations of many ids, taken one by one and at once."""
    ids = iter_ids("counted-one-by-one", using=bench.server)
    with counted() as made:
        for _ in range(MILLION):
            next(ids)
    where = TITLES[bench.server]
    yield Result("reservations", where, Spread.of(made))
    with counted() as made:
        next_ids("counted-at-once", BULK, using=bench.server)
    yield Result("next_ids_reservations", where, Spread.of(made))


@contextmanager
def counted() -> Iterator[list[float]]:
    """Give a list that holds, at the end, how many ranges were reserved."""
    reserved: list[object] = []
    made: list[float] = []

    def count(**facts: object) -> None:
        reserved.append(facts)

    range_reserved.connect(count)
    try:
        yield made
    finally:
        range_reserved.disconnect(count)
        made.append(len(reserved))


def durations(bench: Bench, alias: str, where: str) -> Iterator[Finding]:
    """Time a reservation and what others do for a number."""
    figures = timed(alias, bench.scaled(60, 15), bench.seconds(6), bench.seed)
    pairs = {"reservation": ("reserve()", "get_next_value()")}
    yield from compared(figures, pairs, where, "us")


def timed(alias: str, rounds: int, seconds: float, seed: int) -> Figures:
    """Return the seconds of a call, round by round."""
    calls: dict[str, Callable[[], object]] = {
        "reserve()": partial(reserve, "orders-by-hand", 1024, using=alias),
        "get_next_value()": partial(get_next_value, "orders-by-hand", using=alias),
    }
    turns = {name: partial(_turn, call) for name, call in calls.items()}
    return interleaved(turns, rounds, seconds, seed)


def _turn(call: Callable[[], object]) -> float:
    return seconds_of(lambda: [call() for _ in range(CALLS)]) / CALLS
