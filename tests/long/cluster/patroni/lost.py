"""Numbers that a primary may take with it: they alone may come twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.long.cluster.evidence import Evidence, counter_of, number_of

# The row of a gapless number is lost with it, and the number comes again.
GAPLESS = "letters/"


class Lost:
    """Numbers that no standby had, by counter: above what it had, up to the last."""

    def __init__(self, above: Mapping[str, int]) -> None:
        self._above = above
        self._up_to: dict[str, int] = {}

    def end(self, evidence: Evidence) -> None:
        """Note what was given meanwhile: later numbers are not lost."""
        for counter, spans in evidence.spans.items():
            self._up_to[counter] = max(span.high for span in spans)
        letters = (one.id for one in evidence.given if one.id.startswith(GAPLESS))
        self._up_to[GAPLESS] = max(map(number_of, letters), default=0)

    def has(self, counter: str, number: int) -> bool:
        """Whether a new primary may lack a number."""
        return self._above.get(counter, 0) < number <= self._up_to.get(counter, 0)


def assert_nothing_else_twice(evidence: Evidence, lost: Iterable[Lost]) -> None:
    """Nothing came twice but lost numbers, and those never in one process."""
    all_lost = list(lost)

    def is_lost(id: str) -> bool:
        return any(each.has(counter_of(id), number_of(id)) for each in all_lost)

    falling = [
        (before, id)
        for before, id in evidence.falling()
        if not (id.startswith(GAPLESS) and is_lost(id))
    ]
    overlapping = [
        (one, two)
        for counter, spans in evidence.spans.items()
        for one, two in Evidence(spans={counter: spans}).overlapping()
        if not any(each.has(counter, two.low) for each in all_lost)
    ]
    for what, wrong in (
        ("What must not happen", evidence.failures),
        ("Given more than once", [i for i in evidence.repeated() if not is_lost(i)]),
        ("Refused", [i for i in evidence.rows["refused"] if not is_lost(i)]),
        ("Not over what the process had before", falling),
        ("Ranges that overlap", overlapping),
    ):
        assert not wrong, f"{what}: {wrong[:9]}"
