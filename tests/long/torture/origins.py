"""From which reserved range each number came."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from tests.long.torture.evidence import Evidence, Given, Process, Reserved
from tests.long.torture.seats import WEB


class Part(NamedTuple):
    """Numbers that came out of one range, or (``None``) of none of the process's."""

    low: int
    high: int
    given: Given
    reserved: Reserved | None


def parts_of(evidence: Evidence) -> Iterator[Part]:
    """Yield all given numbers, each span split by the ranges that it came from."""
    ranges = {
        process.seat: _by_counter(process) for process in evidence.processes.values()
    }
    nothing = _Ranges([])
    for given in evidence.given:
        seat = WEB if given.word == "got" else given.process.seat
        known = ranges.get(seat, {}).get(given.counter, nothing)
        yield from known.split(given)


def _by_counter(process: Process) -> dict[str, _Ranges]:
    found: dict[str, list[Reserved]] = defaultdict(list)
    for reserved in process.reserved:
        found[reserved.counter].append(reserved)
    return {counter: _Ranges(ranges) for counter, ranges in found.items()}


class _Ranges:
    """The ranges of one process and counter."""

    def __init__(self, ranges: Iterable[Reserved]) -> None:
        self._ranges = sorted(ranges, key=lambda reserved: reserved.low)
        self._lows = [reserved.low for reserved in self._ranges]
        # The highest number of all ranges up to a place: bound ones may overlap.
        self._highs = list(accumulate((r.high for r in self._ranges), max))

    def split(self, given: Given) -> Iterator[Part]:
        """Split a span: the newest range that has a number gave it."""
        place = bisect_right(self._lows, given.high)
        found = []
        while place and self._highs[place - 1] >= given.low:
            place -= 1
            if self._ranges[place].high >= given.low:
                found.append(self._ranges[place])
        # Of those noted before, the last. Another thread may give out of a range that
        # the one which reserved it has yet to note: rather than of one that is gone.
        found.sort(
            key=lambda r: (_could_give(r, given), r.at <= given.at, r.at), reverse=True
        )
        left = [(given.low, given.high)]
        for reserved in found:
            rest = []
            for low, high in left:
                first, last = max(low, reserved.low), min(high, reserved.high)
                if first > last:
                    rest.append((low, high))
                    continue
                yield Part(first, last, given, reserved)
                if low < first:
                    rest.append((low, first - 1))
                if last < high:
                    rest.append((last + 1, high))
            left = rest
        for low, high in left:
            yield Part(low, high, given, None)


def _could_give(reserved: Reserved, given: Given) -> bool:
    """Whether a range was there, and was not undone or is undone with its numbers."""
    undone = reserved.void_block
    return reserved.asked_at <= given.at and (
        undone is None or (given.block is not None and undone in given.block.path)
    )
