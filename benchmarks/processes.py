"""Processes that do the same at once."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import BrokenBarrierError
from typing import Any

from django.db import connections

FORK = multiprocessing.get_context("fork")
PATIENCE = 60.0


@dataclass(frozen=True)
class Rush:
    """What some processes did together."""

    # In a second, all of them.
    rate: float
    # Seconds of each call, of all of them.
    waits: list[float]


def in_turn(ids: Sequence[Any], processes: int, size: int) -> list[Any]:
    """Return ids as processes insert them in turn, each from ranges of its own."""
    ordered = []
    for start in range(0, len(ids), processes * size):
        of_all = ids[start : start + processes * size]
        of_each = -(-len(of_all) // processes)
        for turn in range(of_each):
            ordered += of_all[turn::of_each]
    return ordered


def rush(
    processes: int,
    warm: Callable[[], object],
    work: Callable[[], object],
    seconds: float,
) -> Rush:
    """Let processes repeat ``work`` for some seconds, after one ``warm``.

    Each has connections of its own, and none of the caller's ranges.
    """
    connections.close_all()
    start = FORK.Barrier(processes)
    pipes, children = [], []
    for _ in range(processes):
        here, there = FORK.Pipe(duplex=False)
        child = FORK.Process(target=_repeat, args=(warm, work, seconds, start, there))
        child.start()
        there.close()
        pipes.append(here)
        children.append(child)
    try:
        answers = [_received(pipe) for pipe in pipes]
    finally:
        for child in children:
            child.join(PATIENCE)
    rate = sum(len(waits) / taken for waits, taken in answers)
    return Rush(rate, [wait for waits, _ in answers for wait in waits])


def _received(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        raise RuntimeError("A process of a benchmark failed; see above.") from None


def _repeat(
    warm: Callable[[], object],
    work: Callable[[], object],
    seconds: float,
    start: Any,
    pipe: Connection,
) -> None:
    try:
        warm()
    except BaseException:
        start.abort()
        raise
    try:
        start.wait(PATIENCE)
    except BrokenBarrierError:
        return  # another has told why
    waits = []
    began = now = time.perf_counter()
    while now < began + seconds:
        work()
        before, now = now, time.perf_counter()
        waits.append(now - before)
    pipe.send((waits, now - began))
    connections.close_all()
