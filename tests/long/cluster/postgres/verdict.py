"""Decides whether a load that has ended kept the promises."""

from __future__ import annotations

from tests.long.cluster.postgres.evidence import Evidence

# An order of magnitude under what a quiet machine has.
FEWEST_CHANGES = 20


def assert_nothing_twice(evidence: Evidence) -> None:
    """No id came twice, and none came late."""
    assert evidence.failures == []
    assert evidence.repeated() == []
    assert evidence.rows["refused"] == set()
    assert evidence.overlapping() == []
    assert evidence.falling() == []


def assert_overlap(evidence: Evidence, tags: dict[str, list[int]]) -> None:
    """The processes of each node tag drew from its counter by turns."""
    for tag, seats in tags.items():
        assert {span.seat for span in evidence.spans[tag]} == set(seats)
        in_time, by_number = evidence.changes(tag)
        assert in_time >= FEWEST_CHANGES, (tag, in_time)
        assert by_number >= FEWEST_CHANGES, (tag, by_number)


def figures(evidence: Evidence) -> str:
    """Return what a run came to, in a line."""
    rows = {fate: len(ids) for fate, ids in sorted(evidence.rows.items())}
    ranges = {tag: len(spans) for tag, spans in sorted(evidence.spans.items())}
    return (
        f"{len(evidence.given)} ids of {len(evidence.seats())} processes, "
        f"{len(evidence.repeated())} twice; turns {evidence.turns()}; ranges {ranges}; "
        f"rows {rows}; errors {dict(evidence.errors)}"
    )
