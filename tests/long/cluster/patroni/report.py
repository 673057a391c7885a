"""What a fault did to the workers: judged, and as a line of a table."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tests.long.cluster.evidence import Evidence, number_of
from tests.long.cluster.patroni.cluster import DATABASE, Cluster
from tests.long.cluster.patroni.lost import (
    GAPLESS,
    Lost,
    assert_nothing_else_twice,
)
from tests.long.cluster.patroni.node import Node

# Of a call that only takes ids.
OURS = {"ConcurrencyError", "ReservationTimeout"}
KINDS = "ids", "rows"
_COUNTERS = f"""
SELECT id, max FROM django_hilo_hilodocument UNION ALL
SELECT '{GAPLESS}', last FROM django_hilo_gaplesscounter UNION ALL
SELECT 'numbers_item/', last_value FROM numbers_item_id_seq
"""
_ROWS = """
SELECT id FROM records_order UNION ALL SELECT id FROM records_letter UNION ALL
SELECT 'numbers_item/' || id FROM numbers_item
"""


class Line(NamedTuple):
    """A line of the table; waits and errors of calls for ids alone, and of others."""

    fault: str
    mode: str
    given: object
    twice: object
    waits: str
    errors: str

    def __str__(self) -> str:
        return (
            f"{self.fault:27} {self.mode:12} {self.given:>6} {self.twice:>5} "
            f"{self.waits:>15}  {self.errors}"
        )


HEAD = Line("fault", "mode", "ids", "twice", "longest wait", "errors")


class Fault:
    """A fault, and how often ids came twice in consequence."""

    def __init__(self, title: str, cluster: Cluster) -> None:
        self.title, self._cluster = title, cluster
        self.twice = 0
        self.note()

    def note(self) -> None:
        """Note up to where all servers have the counters: that is not lost."""
        found = [counters(node) for node in self._cluster.nodes]
        self.lost = Lost(
            {key: min(each.get(key, 0) for each in found) for key in found[0]}
        )

    def end(self, of_this: Evidence, everything: Evidence, before: int) -> Line:
        """Return what came of it; ``before`` had come twice already."""
        self.lost.end(of_this)
        self.twice = len(everything.repeated()) - before
        seats = of_this.seats()
        waits = (f"{of_this.longest(kind, seats):.1f} s" for kind in KINDS)
        told = (
            ", ".join(f"{n} {name}" for name, n in errors(of_this, kind).items())
            for kind in KINDS
        )
        return Line(
            self.title,
            str(self._cluster),
            len(of_this.given),
            self.twice,
            " / ".join(waits),
            " / ".join(each or "none" for each in told),
        )


def assert_promises(cluster: Cluster, evidence: Evidence, faults: list[Fault]) -> None:
    """Nothing came twice or is gone, but what primaries took with them, if they may."""
    assert errors(evidence, "ids").keys() <= OURS
    gone = gone_rows(cluster, evidence)
    if cluster.synchronous:
        evidence.assert_nothing_twice()
        assert not gone
    else:
        assert_nothing_else_twice(evidence, [fault.lost for fault in faults])


def errors(evidence: Evidence, kind: str) -> Counter[str]:
    """Count the errors in which calls of a kind ended."""
    names = (c.outcome.partition(":")[0] for c in evidence.calls if c.kind == kind)
    return Counter(name for name in names if name not in {"ok", "undone"})


def counters(node: Node) -> dict[str, int]:
    """Return up to where a server has each counter."""
    rows = node.execute(_COUNTERS, database=DATABASE)
    return {row["id"]: row["max"] for row in rows}


def gone_rows(cluster: Cluster, evidence: Evidence) -> set[str]:
    """Return committed rows that are gone; no row that was rolled back is there."""
    leader = cluster.leader()
    rows = {row["id"] for row in leader.execute(_ROWS, database=DATABASE)}
    letters = sorted(number_of(id) for id in rows if id.startswith(GAPLESS))
    assert letters == list(range(1, counters(leader)[GAPLESS] + 1)), "gaps"
    # Of an id that came twice, the other may be there.
    undone = evidence.rows["undone"].difference(evidence.repeated())
    assert not undone & rows, sorted(undone & rows)[:9]
    return evidence.rows["stood"] - rows
