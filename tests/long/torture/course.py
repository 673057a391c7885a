"""Whether all that a run is about did happen."""

from typing import Any

from tests.long.torture import seats
from tests.long.torture.checker import Verdict, check_saved_again, check_site
from tests.long.torture.counters import ORDERS
from tests.long.torture.evidence import Evidence, Process
from tests.long.torture.plan import (
    ENDS_OF_BLOCKS,
    ENDS_OF_TRANSACTIONS,
    INSIDE,
    OUTSIDE,
)
from tests.long.torture.stored import Stored
from tests.long.torture.supervisor import PROCESSES, Course

# What was tried so often, on whatever machine, must have succeeded once.
OFTEN = 25


def check_course(
    verdict: Verdict,
    evidence: Evidence,
    stored: Stored,
    course: Course,
    *,
    servers: bool,
    alive: bool,
    thorough: bool,
) -> None:
    """Judge the run.

    ``alive``: something must have happened; ``thorough``: all that a run is about.
    """
    verdict.failures[:0] = course.failures
    verdict.failures += _wrong_at_the_end(evidence, stored, course)
    verdict.tables = {
        "Processes": _processes(evidence, course),
        "Faults": dict(sorted(course.faults.items())),
        "Operations that succeeded (tried)": _operations(evidence),
        "Expected errors": dict(evidence.errors.most_common(25)),
        "Warnings": dict(evidence.warnings.most_common(10)),
        **verdict.tables,
    }
    if alive:
        given = verdict.tables["Numbers"]["given"]
        verdict.failures += course.nothing_done(given)
        verdict.failures += check_saved_again(evidence, servers=servers)
    if thorough:
        verdict.failures += _missing(evidence, course)


def _wrong_at_the_end(evidence: Evidence, stored: Stored, course: Course) -> list[str]:
    failures = []
    if course.sessions:
        failures.append(f"Sessions are left on the server: {course.sessions}")
    alone = evidence.processes.get(seats.ALONE)
    if not evidence.alone or alone is None:
        return [*failures, "The last process, alone, got no id."]
    got = [given.high for given in evidence.given if given.process is alone]
    if got != [stored.max[ORDERS]]:
        failures.append(
            f"The last process, alone, took {got} and ended; Max is "
            f"{stored.max['orders/A']}, so the rest of its range did not go back."
        )
    return failures


def _processes(evidence: Evidence, course: Course) -> dict[str, Any]:
    processes = evidence.processes.values()
    return {
        "started": course.started,
        "most at once": course.most_at_once,
        "children of forks": sum(seats.is_child(p.seat) for p in processes),
        **{f"ended with {how}": times for how, times in course.ended.items()},
        "seconds": f"{course.seconds:.1f}",
    }


def _operations(evidence: Evidence) -> dict[str, Any]:
    return {
        kind: f"{times} ({evidence.tried[kind]})" if kind in evidence.tried else times
        for kind, times in sorted(evidence.done.items())
    }


def _overlap(one: Process, two: Process) -> bool:
    """Whether two processes took numbers at the same time, by their journals."""
    return one is not two and one.first < two.last and two.first < one.last


def _interleaved(evidence: Evidence) -> int:
    """Count the ranges that follow one of a process at work at the same time."""
    count = 0
    before: dict[str, Process] = {}
    for each in sorted(evidence.reserved, key=lambda reserved: reserved.low):
        count += _overlap(before.get(each.counter, each.process), each.process)
        before[each.counter] = each.process
    return count


def _missing(evidence: Evidence, course: Course) -> list[str]:
    """Return what did not happen that the run is about."""
    wanted = set(OUTSIDE) | {f"{kind}, inside" for kind in INSIDE}
    wanted |= {f"transaction, {end}" for end in ENDS_OF_TRANSACTIONS}
    wanted |= {f"block, {end}" for end in ENDS_OF_BLOCKS}
    missing = [
        f"Never succeeded: {what}, tried {evidence.tried[what]} times."
        for what in wanted
        if not evidence.done[what] and evidence.tried[what] >= OFTEN
    ]
    faults = set(course.possible_faults) - set(course.faults)
    missing += [f"Never happened: {kind}." for kind in faults]
    missing += check_site(evidence)
    children = sum(seats.is_child(seat) for seat in evidence.processes)
    for happened, else_wrong in (
        (children, "No process forked."),
        (evidence.done["rows rolled back"], "No row was rolled back."),
        (evidence.returns, "No range was returned."),
        (evidence.refused, "No return was refused."),
        (evidence.choosing, "No id was chosen."),
        (course.most_at_once >= PROCESSES, "The processes did not overlap."),
        (_interleaved(evidence) > PROCESSES, "The ranges do not interleave."),
    ):
        if not happened:
            missing.append(else_wrong)
    return sorted(missing)
