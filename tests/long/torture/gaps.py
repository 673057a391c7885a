"""What became of each number from 1 to Max: given, or a gap with a reason.

Four reasons are wider than what happened. A killed process, and a connection lost at a
commit, excuse as many numbers as were being reserved, on whatever part of the counter.
A warning that unused numbers stay a gap excuses all that its process still held. Rows
that failed may have had numbers of any range that their process held then. What
the site lent is not followed: its clients keep some ranges, and no journal says which.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from django_hilo.conf import Settings
from tests.long.torture.counters import PLAIN
from tests.long.torture.evidence import Evidence, Floor, Raised, Reserved
from tests.long.torture.origins import Part
from tests.long.torture.plan import LONGEST_JUMP
from tests.long.torture.seats import WEB
from tests.long.torture.stored import Stored

_UNNOTED, _FLOOR, _RAISED, _OTHERS, _UNDONE, _GIVEN = range(6)
_REASONS = {
    _GIVEN: "given",
    _UNDONE: "given in what rolled back",
    _RAISED: "jumped over: Max was raised by hand",
    _FLOOR: "jumped over: an id was chosen over it",
    _UNNOTED: "lost: reserved at an unknown commit, or killed before the note",
}
_ENDS = {
    "killed": "held by a killed process",
    "_exit": "held by a process that left by _exit",
    "abrupt": "held by a process that left by _exit, its threads at work",
    "normally": "not the newest range when its process gave it back",
    "lent": "lent within a process, and kept",
    "drawn": "of a sequence, which takes nothing back",
    "cut off": "not given back: the database was away when its process ended",
    "return undone": "given back in what rolled back",
    "site": "lent by the site and not returned, or held by it when killed",
    "returned": "maybe returned: the answer was lost",
    "rolled back": "bound to a transaction that rolled back, and not given again",
    "dropped": "dropped: SQL rolled back some of the transaction",
    "crossed": "given back while another thread of the process reserved over it",
}
_CODES = {end: code for code, end in enumerate(_ENDS, start=6)}


def account(
    tables: dict[str, dict[str, Any]],
    evidence: Evidence,
    stored: Stored,
    standing: dict[str, list[Part]],
) -> list[str]:
    """Paint the numbers of each counter and count; return what is wrong."""
    failures = []
    for counter, highest in sorted(stored.max.items()):
        # A process keeps over a number that was chosen in vain, too.
        floors = evidence.floors[counter] + (
            evidence.choosing if counter == PLAIN else []
        )
        canvas = _paint(counter, highest, evidence, floors, standing.get(counter, []))
        failures += _kept_back(canvas, counter, evidence, floors)
        counts = Counter(canvas[1:])
        figures: dict[str, Any] = {"Max": highest}
        for code, text in {**_REASONS, **_texts()}.items():
            if counts[code]:
                figures[text] = counts[code]
        tables[f"Numbers of {counter}"] = figures
        if sum(counts.values()) != highest:
            failures.append(f"{counter}: {sum(counts.values())} of {highest} numbers.")
        if counts[_UNNOTED] > evidence.lost[counter]:
            failures.append(
                f"{counter}: {counts[_UNNOTED]} numbers are in no journal, but "
                f"only {evidence.lost[counter]} can have been lost: "
                f"{_spans(canvas, _UNNOTED)}"
            )
    return failures


def _texts() -> dict[int, str]:
    return {_CODES[end]: text for end, text in _ENDS.items()}


def _paint(
    counter: str,
    highest: int,
    evidence: Evidence,
    floors: list[Floor],
    parts: list[Part],
) -> bytearray:
    canvas = bytearray(highest + 1)

    def paint(low: int, high: int, code: int) -> None:
        high = min(high, highest)
        if low <= high:
            canvas[low : high + 1] = bytes([code]) * (high - low + 1)

    def fill(low: int, high: int, code: int) -> None:
        numbers = slice(low, high + 1)
        canvas[numbers] = canvas[numbers].translate(bytes([code, *range(1, 256)]))

    for raised in evidence.raised:
        if raised.counter == counter:
            paint(raised.old + 1, raised.new, _RAISED)
    ranges = [each for each in evidence.reserved if each.counter == counter]
    for reserved in ranges:
        if reserved.void_block is None and not reserved.may_be_void:
            paint(reserved.low, reserved.top, _CODES[_end_of(reserved)])
    # A floor jumps over what nobody holds: also over what rolled back or went back.
    _paint_floors(canvas, counter, floors)
    for reserved in ranges:
        if reserved.may_be_returned:
            fill(reserved.top + 1, reserved.high, _CODES["returned"])
    for reserved in ranges:
        if reserved.void_block is not None or reserved.may_be_void:
            fill(reserved.low, reserved.high, _CODES["rolled back"])
    for part in parts:
        block = part.given.block
        undone = block is not None and "undone" in block.outcomes()
        paint(part.low, part.high, _UNDONE if undone else _GIVEN)
    _paint_crossed(canvas, counter, evidence)
    return canvas


def _end_of(reserved: Reserved) -> str:
    process = reserved.process
    if process.seat == WEB:
        return "site"
    if process.end != "normally":
        return process.end
    return next(
        (
            reason
            for reason, is_meant in (
                ("lent", reserved.is_lent),
                ("drawn", reserved.is_drawn),
                ("return undone", reserved.is_return_undone),
                ("dropped", reserved.is_dropped),
                ("cut off", process.is_cut_off),
            )
            if is_meant
        ),
        "normally",
    )


def _kept_back(
    canvas: bytearray, counter: str, evidence: Evidence, floors: list[Floor]
) -> Iterator[str]:
    """Tell of newest ranges that a process kept, though it ended normally."""
    ranges = [each for each in evidence.reserved if each.counter == counter]
    for reserved in ranges:
        if reserved.void_block is not None or reserved.may_be_void:
            continue  # its numbers are those of others
        numbers = reserved.low, reserved.top + 1
        first = canvas.find(_CODES["normally"], *numbers)
        if first < 0 or _end_of(reserved) != "normally":
            continue
        if _is_passed(canvas, reserved, ranges, evidence.raised):
            continue
        kept = canvas.count(_CODES["normally"], *numbers)
        if kept <= reserved.process.unborn_of(reserved):
            continue  # given to rows, and the rest went back
        ended = reserved.process.last
        # A range that holds a number which was chosen is dropped; a floor that is
        # written while a range is held makes its ticket worth nothing.
        if not any(
            floor.at <= ended
            and (floor.number >= first or floor.written_at > reserved.asked_at)
            for floor in floors
        ):
            yield (
                f"{counter}: {first}-{reserved.top} did not go back when seat "
                f"{reserved.process.seat} ended, and nothing had come after it."
            )


def _is_passed(
    canvas: bytearray,
    passed: Reserved,
    ranges: list[Reserved],
    raised: Iterable[Raised],
) -> bool:
    """Whether Max was over a range before its process ended."""
    # What was reserved right over it, and lost.
    if canvas[passed.high + 1 : passed.high + 2] == bytes([_UNNOTED]):
        return True
    ended = passed.process.last
    return any(
        later.low > passed.high and later.asked_at <= ended for later in ranges
    ) or any(
        each.counter == passed.counter
        and each.old >= passed.high
        and each.asked_at <= ended
        for each in raised
    )


def _paint_crossed(canvas: bytearray, counter: str, evidence: Evidence) -> None:
    """Tell what went back too late for a thread that kept over all the process had."""
    for each in evidence.returns:
        if each.counter != counter:
            continue
        for over in each.process.reserved:
            if (over.counter, over.low) == (
                counter,
                each.high + 1,
            ) and over.asked_at < each.at < over.at:
                for number in range(each.last + 1, each.high + 1):
                    if canvas[number] == _UNNOTED:
                        canvas[number] = _CODES["crossed"]


def _paint_floors(canvas: bytearray, counter: str, floors: list[Floor]) -> None:
    """Tell what floors jumped over: what is right under them, and of no range."""
    for floor in sorted(floors, key=lambda floor: floor.number):
        low = floor.number
        least = max(low - _reach(floor, counter), 0)
        while least < low < len(canvas) and canvas[low] == _UNNOTED:
            canvas[low] = _FLOOR
            low -= 1


def _reach(floor: Floor, counter: str) -> int:
    """Return over how many numbers a floor can have jumped."""
    if floor.writer is None:
        return LONGEST_JUMP
    # It is written 0 ahead at first, then CAPACITY, then up to twice as far each time.
    return LONGEST_JUMP + (Settings.CAPACITY << floor.writer.floors[counter])


def _spans(canvas: bytearray, code: int) -> str:
    pattern = re.compile(bytes([code]) + b"+")
    found = [f"{m.start() + 1}-{m.end()}" for m in pattern.finditer(bytes(canvas[1:]))]
    return ", ".join(found[:8]) + (" ..." if len(found) > 8 else "")
