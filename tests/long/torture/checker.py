"""Decides whether a run kept the promises.

On the servers no number may come twice. On SQLite one may that only a transaction saw
which rolled back together with the range that the number is of, and only in another
process; the child of a fork is another one. Nothing else may.
"""

from bisect import bisect, bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.long.torture import rows
from tests.long.torture.counters import PLAIN, number_of
from tests.long.torture.evidence import KEPT, UNDONE, Evidence, Process, Reserved
from tests.long.torture.origins import Part, parts_of
from tests.long.torture.seats import WEB
from tests.long.torture.stored import Stored

DUPLICATES = "numbers given twice"
FROM_NOWHERE = "numbers of no range of their process"
AFTER_ROLLBACK = "numbers of ranges that had rolled back"
OVERLAPPING = "ranges that overlap"
ELSEWHERE = "numbers kept that others have"


@dataclass
class Verdict:
    """Tables to print, and what is wrong."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def check(evidence: Evidence, stored: Stored, *, servers: bool) -> Verdict:
    """Decide whether the run kept all promises."""
    verdict = Verdict(failures=list(dict.fromkeys(evidence.failures)))
    verdict.failures += rows.settle_unknown(evidence, stored)
    verdict.failures += rows.wrongs(evidence, stored)
    _apply_returns(evidence, verdict, servers=servers)
    parts = list(parts_of(evidence))
    figures = verdict.tables.setdefault("Numbers", {})
    figures["given"] = sum(part.high - part.low + 1 for part in parts)
    figures["of them by the site"] = sum(
        part.high - part.low + 1 for part in parts if part.given.word == "got"
    )
    for word, what in (
        ("kept", "saved again with their id"),
        ("left", "not saved again"),
    ):
        figures[f"objects {what}"] = sum(
            times for (how, _), times in evidence.again.items() if how == word
        )
    figures["reservations"] = sum(1 for _ in evidence.reserved)
    figures["of them bound to a transaction"] = sum(
        each.is_bound for each in evidence.reserved
    )
    figures["returns taken"] = len(evidence.returns)
    figures["returns refused"] = evidence.refused
    figures["tries again"] = evidence.retries
    standing = _check_numbers(verdict, parts, figures)
    if servers and figures["of them bound to a transaction"]:
        verdict.failures.append("A range was bound to a transaction on a server.")
    _check_kept(verdict, evidence, standing, figures)
    _check_ranges(verdict, evidence, figures)
    _check_max(verdict, evidence, stored, standing)
    _check_explicit(verdict, evidence, standing, servers=servers)
    return verdict


def _apply_returns(evidence: Evidence, verdict: Verdict, *, servers: bool) -> None:
    """Take from each range what went back."""
    for back in sorted(evidence.returns, key=lambda back: back.at):
        outcomes = back.block.outcomes() if back.block and not servers else set()
        # A range is returned by its process, or over the site, which lent it.
        mine = [
            reserved
            for reserved in back.process.reserved
            if reserved.counter == back.counter
            and reserved.high == back.high
            and reserved.low - 1 <= back.last
            and reserved.asked_at <= back.at
            and reserved.void_block is None
        ]
        if UNDONE in outcomes:  # SQLite: rolled back, and so not returned
            continue
        if not mine:
            if back.is_certain:
                verdict.failures.append(
                    f"Seat {back.process.seat} returned down to {back.last} from "
                    f"{back.high} of {back.counter}, no range of its."
                )
            continue
        # Another thread may return a range that the one which reserved it has yet to
        # note: rather one that was noted before.
        newest = max(mine, key=lambda each: (each.at <= back.at, each.at))
        newest.top = min(newest.top, back.last)


def _check_numbers(
    verdict: Verdict, parts: list[Part], figures: dict[str, Any]
) -> dict[str, list[Part]]:
    """Check each number's origin, and that it came once; return those that count."""
    standing: dict[str, list[Part]] = defaultdict(list)
    fleeting: dict[Reserved, list[Part]] = defaultdict(list)
    # Numbers that a process has burnt: it never gives them again. It does not know of
    # those that the program reserved for itself.
    lives: dict[tuple[Process, str], list[Part]] = defaultdict(list)
    nowhere, after_rollback = [], []
    for part in parts:
        reserved = part.reserved
        if part.given.word in ("given", "had"):
            lives[part.given.process, part.given.counter].append(part)
        if reserved is None:
            nowhere.append(part)
            standing[part.given.counter].append(part)
        elif reserved.void_block is not None:
            fleeting[reserved].append(part)
            block = part.given.block
            if block is None or reserved.void_block not in block.path:
                after_rollback.append(part)
        elif reserved.may_be_void:
            fleeting[reserved].append(part)
        else:
            standing[part.given.counter].append(part)
    twice: list[Part] = []
    for group in (*standing.values(), *fleeting.values(), *lives.values()):
        group.sort(key=lambda part: part.low)
        highest = None
        for part in group:
            if highest is not None and part.low <= highest.high:
                twice.append(part)
            if highest is None or part.high > highest.high:
                highest = part
    for what, found in (
        (DUPLICATES, dict.fromkeys(twice)),
        (FROM_NOWHERE, nowhere),
        (AFTER_ROLLBACK, after_rollback),
    ):
        figures[what] = sum(part.high - part.low + 1 for part in found)
        if found:
            verdict.failures.append(f"{what.capitalize()}: {_some(found)}")
    return standing


def _check_kept(
    verdict: Verdict,
    evidence: Evidence,
    standing: dict[str, list[Part]],
    figures: dict[str, Any],
) -> None:
    """Nobody else has a number that an object kept; add those to what stands."""
    kept: dict[str, list[Part]] = defaultdict(list)
    for each in evidence.kept:
        if each.block is None or each.block.outcomes() == {KEPT}:
            kept[each.counter].append(Part(each.low, each.high, each, None))
    wrong = []
    for counter, parts in kept.items():
        parts.sort(key=lambda part: part.low)
        numbers = [part.low for part in parts]
        wrong += [one for one, two in pairwise(parts) if one.low == two.low]
        for part in standing[counter]:
            found = parts[bisect_left(numbers, part.low) : bisect(numbers, part.high)]
            wrong += [
                one for one in found if one.given.process is not part.given.process
            ]
        standing[counter] += parts
    figures[ELSEWHERE] = len(wrong)
    if wrong:
        verdict.failures.append(f"{ELSEWHERE.capitalize()}: {_some(wrong)}")


def _check_ranges(
    verdict: Verdict, evidence: Evidence, figures: dict[str, Any]
) -> None:
    """No two ranges that are committed share a number that was not returned."""
    by_counter: dict[str, list[Reserved]] = defaultdict(list)
    for reserved in evidence.reserved:
        is_committed = reserved.void_block is None and not reserved.may_be_void
        if is_committed and reserved.top >= reserved.low:
            by_counter[reserved.counter].append(reserved)
    wrong = []
    for ranges in by_counter.values():
        ranges.sort(key=lambda reserved: reserved.low)
        before = None
        for reserved in ranges:
            if before is not None and reserved.low <= before.top:
                wrong.append(
                    f"{reserved.counter} {before.low}-{before.top} and "
                    f"{reserved.low}-{reserved.top}"
                )
            if before is None or reserved.top > before.top:
                before = reserved
    figures[OVERLAPPING] = len(wrong)
    if wrong:
        verdict.failures.append(f"Ranges overlap: {_some(wrong)}")


def _check_max(
    verdict: Verdict,
    evidence: Evidence,
    stored: Stored,
    standing: dict[str, list[Part]],
) -> None:
    """Max is over each number that was given, and over each committed range."""
    for counter, parts in standing.items():
        above = [part for part in parts if part.high > stored.max.get(counter, 0)]
        if above:
            text = f"Above Max {stored.max.get(counter, 0)}: {_some(above)}"
            verdict.failures.append(text)
    for reserved in evidence.reserved:
        highest = stored.max.get(reserved.counter, 0)
        if reserved.void_block or reserved.may_be_void or reserved.top <= highest:
            continue
        verdict.failures.append(
            f"Max of {reserved.counter} is {highest}, under the range "
            f"{reserved.low}-{reserved.top} of seat {reserved.process.seat}."
        )


def _check_explicit(
    verdict: Verdict,
    evidence: Evidence,
    standing: dict[str, list[Part]],
    *,
    servers: bool,
) -> None:
    """After an id that somebody chose was saved, no new range holds its number."""
    settled = [
        (chosen.number, chosen.block, chosen.process)
        for chosen in evidence.chosen
        if chosen.block.outcomes() == {KEPT}
        and not any(chosen.number <= number for number in chosen.process.unstored)
    ]
    ranges = [each for each in evidence.reserved if each.counter == PLAIN]
    parts = standing.get(PLAIN, [])
    for number, block, process in settled:
        transaction = block.path[0]
        at = transaction.shut_at or process.last
        # On servers the floor is raised after the commit of a transaction, which
        # nobody may have lived to do. The process itself knows the number.
        may_lack = servers and transaction.was_unknown and block is not transaction
        for reserved in ranges:
            if may_lack and reserved.process is not process:
                continue
            if reserved.asked_at > at and reserved.low <= number <= reserved.high:
                verdict.failures.append(
                    f"{number} was chosen, and in the later range {reserved.low}-"
                    f"{reserved.high} of seat {reserved.process.seat}."
                )
        for part in parts:
            if (
                part.given.process is process
                and part.given.asked_at > at
                and part.given.word != "had"  # since when, nobody noted
                and part.low <= number <= part.high
            ):
                text = f"Seat {process.seat} chose {number}, and then gave it."
                verdict.failures.append(text)
    _check_collisions(verdict, evidence, parts)


def _check_collisions(verdict: Verdict, evidence: Evidence, parts: list[Part]) -> None:
    """A row is refused only where one of the two ids was chosen."""
    chosen = evidence.choosing
    given = {number for part in parts for number in range(part.low, part.high + 1)}
    for kind, ids, process in evidence.collided:
        numbers = {number_of(id) for id in ids}
        if not numbers & (chosen if kind == "own" else chosen | given):
            text = f"Refused by the table, seat {process.seat}: {_some(ids)}"
            verdict.failures.append(text)


def check_site(evidence: Evidence) -> list[str]:
    """Check that the site did reserve ranges."""
    site = evidence.processes.get(WEB)
    return [] if site and site.reserved else ["The site reserved no range."]


def check_saved_again(evidence: Evidence, *, servers: bool) -> list[str]:
    """Check that objects whose rows were rolled back kept their ids, or were refused.

    Not of ids that somebody may have chosen: those may change anywhere.
    """
    kept, left, reborn = (
        sum(evidence.again[word, model] for model in ("Order", "Item"))
        for word in ("kept", "left", "reborn")
    )
    wrongs = [] if kept else ["No object that was saved again kept its id."]
    if reborn:
        wrongs.append(f"{reborn} objects that were saved again got another id.")
    if servers and left:
        wrongs.append(f"{left} objects were not saved again.")
    elif not servers and not left:
        wrongs.append("No object was refused, though others could have its id.")
    return wrongs


def _some(things: Iterable[Any]) -> str:
    texts = [
        f"{thing.given.counter} {thing.low}-{thing.high} (seat "
        f"{thing.given.process.seat})"
        if isinstance(thing, Part)
        else str(thing)
        for thing in things
    ]
    shown = ", ".join(texts[:8])
    return f"{shown}{' ...' if len(texts) > 8 else ''} ({len(texts)})"
