"""Decides whether a run kept the promises.

Which numbers must differ: on the servers all; on SQLite those that were taken outside
transactions or stand in committed ones, since numbers that only a rolled-back
transaction saw may come again there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.stress.evidence import Evidence, Span, Stored
from tests.stress.supervisor import WORKERS, Course

DUPLICATES = "duplicates"
FOREIGN = "numbers of no own range"
OVERLAPPING = "ranges that overlap"
REFUSED = "new rows whose id the table had"
HELD_AT_FORKS = "numbers that parents held at a fork, given later"
AT_ONCE = "most processes at once"
INTERLEAVED = "ranges next to one of another process"


@dataclass
class Verdict:
    """Figures to print, and what is wrong."""

    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def has_repetitions(self) -> bool:
        """Whether a number came twice, or could have: what a sabotage must lead to."""
        signs = (DUPLICATES, FOREIGN, OVERLAPPING, REFUSED)
        return any(self.figures[sign] for sign in signs)


def check(evidence: Evidence, stored: Stored, *, servers: bool) -> Verdict:
    """Decide whether the run kept all promises."""
    verdict = Verdict(failures=list(evidence.failures))
    judged = evidence.given + evidence.stands + (evidence.undone if servers else [])
    verdict.figures.update(
        {
            "numbers outside transactions": len(evidence.given),
            "numbers that stand in committed transactions": len(evidence.stands),
            "numbers that were rolled back": len(evidence.undone),
            "rows committed": len(stored.rows),
            "rows rolled back": evidence.born - len(stored.rows),
            "reservations": sum(len(p.spans) for p in evidence.processes.values()),
            "of them bound to a transaction": sum(
                span.bound for p in evidence.processes.values() for span in p.spans
            ),
            "rolled-back numbers that came again": _came_again(evidence),
            "returns": sum(p.returned for p in evidence.processes.values()),
            "Max": stored.max,
            "highest number given": max(judged, default=0),
        }
    )
    _check_distinct(verdict, judged)
    _check_refused(verdict, evidence)
    _check_rows(verdict, evidence, stored)
    _check_own_ranges(verdict, evidence)
    _check_disjoint(verdict, evidence, servers=servers)
    above = [number for number in judged if number > stored.max]
    verdict.figures["numbers above Max"] = len(above)
    if above:
        verdict.failures.append(f"Above Max {stored.max}: {_some(above)}")
    _count_gaps(verdict, evidence, judged, stored.max)
    _show_overlap(verdict, evidence)
    _show_memory_at_forks(verdict, evidence)
    for text, count in evidence.errors.items():
        verdict.figures[f"error: {text}"] = count
    verdict.figures["warnings of retries"] = evidence.retries
    return verdict


def check_course(verdict: Verdict, evidence: Evidence, course: Course) -> None:
    """Decide whether all that the run is about did happen."""
    verdict.failures[:0] = course.failures
    processes = evidence.processes
    last = processes.get(course.last_seat)
    ends = Counter(
        process.end for seat, process in processes.items() if seat not in course.killed
    )
    figures: dict[str, Any] = dict(course.events)
    figures["forked"] = sum(len(p.forked) for p in processes.values())
    figures["ends by _exit"] = ends["_exit"]
    figures["normal ends, of children too"] = ends["normally"]
    figures["ids of the generator"] = course.ids
    figures["rows through create()"] = course.rows
    figures["seconds"] = f"{course.seconds:.1f}"
    verdict.figures = {**figures, **verdict.figures}
    held = verdict.figures[HELD_AT_FORKS]
    for happened, else_wrong in (
        (course.killed, "No process was killed."),
        (figures["forked"], "No process forked."),
        (held, "No process held numbers when it forked."),
        (course.events["ended normally"], "No process ended normally."),
        (not _lost_children(evidence, course), "A child of a fork is missing."),
        (not ends["killed"], "A process that nobody killed did not end well."),
        (verdict.figures["rows rolled back"], "No row was rolled back."),
        (verdict.figures["returns"], "No range was returned."),
        (verdict.figures[AT_ONCE] >= WORKERS, "The processes did not overlap."),
        (verdict.figures[INTERLEAVED] >= WORKERS, "The ranges do not interleave."),
        (
            last and [verdict.figures["Max"]] == [number for _, number in last.got],
            "The last process, alone, did not return what it had not used.",
        ),
    ):
        if not happened:
            verdict.failures.append(else_wrong)


def _lost_children(evidence: Evidence, course: Course) -> list[int]:
    # A parent that was killed may have noted a fork that it did not come to.
    return [
        seat
        for process in evidence.processes.values()
        for _, seat in process.forked
        if seat not in evidence.processes and process.seat not in course.killed
    ]


def _came_again(evidence: Evidence) -> int:
    times = Counter(evidence.given + evidence.stands + evidence.undone)
    return sum(times[number] > 1 for number in set(evidence.undone))


def _check_distinct(verdict: Verdict, judged: list[int]) -> None:
    repeated = [number for number, times in Counter(judged).items() if times > 1]
    verdict.figures[DUPLICATES] = len(repeated)
    if repeated:
        verdict.failures.append(f"Given more than once: {_some(repeated)}")


def _check_refused(verdict: Verdict, evidence: Evidence) -> None:
    verdict.figures[REFUSED] = len(evidence.repeated)
    if evidence.repeated:
        verdict.failures.append(f"Refused by the table: {_some(evidence.repeated)}")


def _check_rows(verdict: Verdict, evidence: Evidence, stored: Stored) -> None:
    rows = set(stored.rows)
    for what, wrong in (
        ("Committed, but not in the table", evidence.committed - rows),
        ("Rolled back, but in the table", evidence.rolled_back & rows),
        ("In the table, but of no committed transaction", rows - evidence.committed),
    ):
        if wrong:
            verdict.failures.append(f"{what}: {_some(wrong)}")


def _check_own_ranges(verdict: Verdict, evidence: Evidence) -> None:
    """Each number is from a range that its process reserved, its parent's excluded."""
    foreign = []
    for process in evidence.processes.values():
        own = Numbers(process.spans)
        foreign += [number for _, number in process.got if number not in own]
    verdict.figures[FOREIGN] = len(foreign)
    if foreign:
        verdict.failures.append(f"Not of a range of the process: {_some(foreign)}")


def _check_disjoint(verdict: Verdict, evidence: Evidence, *, servers: bool) -> None:
    spans = [span for span in _spans_by_low(evidence) if servers or not span.bound]
    overlapping = [
        (one.low, one.high, two.low, two.high)
        for one, two in pairwise(spans)
        if two.low <= one.high
    ]
    verdict.figures[OVERLAPPING] = len(overlapping)
    if overlapping:
        verdict.failures.append(f"Ranges overlap: {_some(overlapping)}")


def _spans_by_low(evidence: Evidence) -> list[Span]:
    spans = [span for p in evidence.processes.values() for span in p.spans]
    used = [span for span in spans if span.high >= span.low]
    return sorted(used, key=lambda span: span.low)


_GAPS = {
    0: "gaps in no journal (killed between commit and note, or rolled back)",
    1: "gaps of killed processes",
    2: "gaps of processes that left by _exit",
    3: "gaps of normal ends, not of the newest range",
    4: "gaps of transactions that rolled back",
}
_OF_END = {"killed": 1, "_exit": 2, "normally": 3}
_GIVEN = 255


def _count_gaps(
    verdict: Verdict, evidence: Evidence, judged: list[int], highest: int
) -> None:
    """Paint the numbers 1 to Max by what became of them, and count."""
    canvas = bytearray(highest + 1)
    spans = [span for p in evidence.processes.values() for span in p.spans]
    for span in sorted(spans, key=lambda span: span.at):
        high = min(span.high, highest)
        if high >= span.low:
            canvas[span.low : high + 1] = bytes([_OF_END[span.process.end]]) * (
                high - span.low + 1
            )
    for code, numbers in ((4, evidence.undone), (_GIVEN, judged)):
        for number in numbers:
            if number <= highest:
                canvas[number] = code
    canvas[0] = _GIVEN
    verdict.figures["gaps (Max less numbers given)"] = highest - len(set(judged))
    for code, text in _GAPS.items():
        verdict.figures[f"  {text}"] = canvas.count(code)


def _show_overlap(verdict: Verdict, evidence: Evidence) -> None:
    """Show that the processes were at work at the same time, at the same counter."""
    active = [process for process in evidence.processes.values() if process.got]
    pairs = 0
    for place, one in enumerate(active):
        for two in active[place + 1 :]:
            pairs += one.first < two.last and two.first < one.last
    starts = [(p.first, 1) for p in active] + [(p.last, -1) for p in active]
    at_once = most = 0
    for _, change in sorted(starts):
        at_once += change
        most = max(most, at_once)
    spans = _spans_by_low(evidence)
    interleaved = sum(
        one.process is not two.process
        and one.process.first < two.process.last
        and two.process.first < one.process.last
        for one, two in pairwise(spans)
    )
    verdict.figures["process pairs whose spans overlap"] = pairs
    verdict.figures[AT_ONCE] = most
    verdict.figures[INTERLEAVED] = interleaved


def _show_memory_at_forks(verdict: Verdict, evidence: Evidence) -> None:
    """Count what parents gave after a fork out of ranges reserved before it."""
    numbers = 0
    for process in evidence.processes.values():
        for forked_at, _ in process.forked:
            held = Numbers(span for span in process.spans if span.at < forked_at)
            numbers += sum(
                at > forked_at and number in held for at, number in process.got
            )
    verdict.figures[HELD_AT_FORKS] = numbers


class Numbers:
    """Whether a number is in one of some ranges."""

    def __init__(self, spans: Iterable[Span]) -> None:
        bounds = sorted((span.low, span.reserved_high) for span in spans)
        self._lows = [low for low, _ in bounds]
        # Where ranges overlap, as bound ones may that rolled back: the highest so far.
        self._highs: list[int] = []
        for _, high in bounds:
            self._highs.append(max(high, self._highs[-1] if self._highs else 0))

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._lows, number) - 1
        return place >= 0 and number <= self._highs[place]


def _some(things: Iterable[Any]) -> str:
    listed = sorted(things)
    shown = ", ".join(map(str, listed[:10]))
    return f"{shown}{' ...' if len(listed) > 10 else ''} ({len(listed)})"
