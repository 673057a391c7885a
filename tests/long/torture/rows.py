"""Whether each row is there that was committed, with its data, and no other."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.long.torture.counters import GAPLESS, counter_of, number_of
from tests.long.torture.evidence import KEPT, UNDONE, UNKNOWN, Evidence, Given, Row
from tests.long.torture.operations import SERIES
from tests.long.torture.stored import Stored


def settle_unknown(evidence: Evidence, stored: Stored) -> list[str]:
    """Let the table tell of transactions of which only the database knows.

    Returns what is wrong: those of which it has a part.
    """
    torn = []
    rows = set(stored.rows)
    for transaction in evidence.transactions:
        if transaction.outcome != UNKNOWN:
            continue
        standing = transaction.standing()
        there = [row for row in standing if row in rows]
        if standing:
            transaction.outcome = KEPT if there else UNDONE
        transaction.was_unknown = True
        if 0 < len(there) < len(standing):
            torn.append(f"Torn: of {_some(standing)} only {_some(there)}")
    return torn


def wrongs(evidence: Evidence, stored: Stored) -> list[str]:
    """Compare the rows with the journals, and return what is wrong."""
    kept: set[Row] = set()
    undone: set[Row] = set()
    for transaction in evidence.transactions:
        fine = transaction.outcome == KEPT
        (kept if fine else undone).update(transaction.standing())
        undone.update(transaction.fallen())
    rows = set(stored.rows)
    unnoted = {row for row in rows - kept if row[2] in evidence.may_exist}
    _give_unnoted(evidence, unnoted)
    failures = []
    for what, wrong in (
        ("Committed, but not in the table", kept - rows),
        ("Rolled back, but in the table", (undone - kept - unnoted) & rows),
        ("In the table, but of no committed transaction", rows - kept - unnoted),
    ):
        if wrong:
            failures.append(f"{what}: {_some(wrong)}")
    times = Counter((model, name) for model, _, name in rows)
    if twice := [row for row in rows if times[row[0], row[2]] > 1]:
        failures.append(f"One object, two rows: {_some(twice)}")
    evidence.done["rows committed"] = len(rows)
    evidence.done["rows rolled back"] = len(undone)
    evidence.done["rows that nobody lived to note"] = len(unnoted)
    return failures + _gapless_wrongs(evidence, stored)


def _give_unnoted(evidence: Evidence, rows: Iterable[Row]) -> None:
    """Count the numbers of rows whose process did not live to note them."""
    for model, id, name in rows:
        counter = counter_of(model)
        process = evidence.processes.get(int(name.split(".")[0]))
        number = number_of(id) if counter else 0
        if counter and process and number not in evidence.choosing:
            at = process.last
            given = Given(counter, number, number, at, at, None, process)
            if _was_given(evidence, given):
                evidence.kept.append(replace(given, word="kept"))
            else:
                evidence.given.append(given)


def _was_given(evidence: Evidence, again: Given) -> bool:
    """Whether the process of a row noted its number before, for the same object."""
    return any(
        given.process is again.process
        and given.counter == again.counter
        and given.low <= again.low <= given.high
        for given in evidence.given
    )


def _gapless_wrongs(evidence: Evidence, stored: Stored) -> list[str]:
    failures = []
    found: dict[str, list[int]] = {GAPLESS: [], **{f"receipts.{s}": [] for s in SERIES}}
    for model, id, _ in stored.rows:
        if model == "Letter":
            found[GAPLESS].append(number_of(id))
        elif model == "Receipt":
            place, _, number = id.rpartition("-")
            found[f"receipts.{place}"].append(int(number))
    for name, numbers in found.items():
        last = stored.gapless.get(name, 0)
        evidence.done[f"gapless numbers of {name}"] = last
        if sorted(numbers) != list(range(1, last + 1)):
            missing = set(range(1, last + 1)) ^ set(numbers)
            failures.append(f"Gaps among {name} up to {last}: {_some(missing)}")
    for collection, asked in evidence.counting.items():
        told = evidence.counted[collection]
        last = stored.gapless.get(collection, 0)
        if len(set(told)) < len(told):
            failures.append(f"Gapless numbers of {collection} came twice: {told}")
        if max(told, default=0) > last or not len(told) <= last <= asked:
            failures.append(
                f"{collection} is at {last}; {asked} asked, {len(told)} were told."
            )
    return failures


def _some(things: Iterable[Any]) -> str:
    listed = sorted(map(str, things))
    shown = ", ".join(listed[:6])
    return f"{shown}{' ...' if len(listed) > 6 else ''} ({len(listed)})"
