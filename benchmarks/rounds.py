"""Candidates by turns, and the ratios of what they cost in the same round."""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

# What each candidate gave, a figure a round.
Figures = dict[str, list[float]]
T = TypeVar("T")

LEAST_ROUNDS = 3
# Of all threads of this process. It leaves out servers, and others on the machine.
PROCESSOR = time.process_time


@dataclass(frozen=True)
class Taken:
    """The seconds of one turn: of the program's CPU, and of whoever waits for it."""

    processor: float
    whole: float

    def __truediv__(self, parts: int) -> Taken:
        return Taken(self.processor / parts, self.whole / parts)


@dataclass(frozen=True)
class Spread:
    """What some rounds gave."""

    median: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Return the spread of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures), len(figures))


def interleaved(
    candidates: Mapping[str, Callable[[], T]],
    rounds: int,
    seconds: float = math.inf,
    seed: int = 1,
) -> dict[str, list[T]]:
    """Ask all candidates once a round, in an order that changes; return their figures.

    A first round is not counted. After ``seconds`` no round starts, but three there are
    at least. Each pays for its own garbage, not for that of those before it.
    """
    order = list(candidates)
    shuffle = random.Random(seed).shuffle
    for name in order:
        candidates[name]()
    figures: dict[str, list[T]] = {name: [] for name in order}
    until = time.monotonic() + seconds
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.monotonic() > until:
            break
        shuffle(order)
        for name in order:
            gc.collect()
            figures[name].append(candidates[name]())
    return figures


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Let rounds of short turns not look through all that was there before them.

    Not for turns that make many objects: they would be looked through too often.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def by_clock(turns: Mapping[str, list[Taken]]) -> dict[str, Figures]:
    """Return the figures of CPU time, and those of whole time as "_wall"."""
    return {
        "": {name: [each.processor for each in took] for name, took in turns.items()},
        "_wall": {name: [each.whole for each in took] for name, took in turns.items()},
    }


def ratio(figures: Figures, of: str, to: str) -> Spread:
    """Return the figure of one candidate to that of another, round by round."""
    return Spread.of(ratios(figures, of, to))


def ratios(figures: Figures, of: str, to: str) -> list[float]:
    return [a / b for a, b in zip(figures[of], figures[to], strict=True)]


def spreads(figures: Figures, times: float = 1) -> dict[str, Spread]:
    """Return the spread of each candidate; seconds ``times`` 1e6 are microseconds."""
    return {
        name: Spread.of([figure * times for figure in given])
        for name, given in figures.items()
    }


def seconds_of(
    work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return how long something takes, or how long it has the processor."""
    start = clock()
    work()
    return clock() - start


def taken(work: Callable[[], object]) -> Taken:
    """Return what something takes by both clocks."""
    start, processor = time.perf_counter(), PROCESSOR()
    work()
    return Taken(PROCESSOR() - processor, time.perf_counter() - start)
