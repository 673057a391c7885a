"""Decides whether a load, at rest or ended, kept the promises."""

from __future__ import annotations

from collections import Counter

from tests.long.cluster.galera.evidence import SHARED, Evidence
from tests.long.cluster.galera.limits import LONGEST, LONGEST_ELSEWHERE
from tests.long.cluster.galera.load import Load
from tests.long.cluster.galera.node import Node

# What clients of a cluster meet: deadlocks, also those with other nodes; locks; a node
# that is not ready or loses its quorum; a connection that is lost or not to be had.
KNOWN = {"1213", "1205", "1047", "1180", "2002", "2003", "2006", "2013"}
# A quiet machine has many times as many.
FEWEST_CHANGES = 20


def assert_nothing_twice(evidence: Evidence) -> None:
    """No number came twice, and none came late."""
    for what, wrong in (
        ("What must not happen", evidence.failures),
        ("Given more than once", evidence.repeated()),
        ("Ranges that overlap", evidence.overlapping()),
        ("Not over what the process had before", evidence.falling()),
    ):
        assert not wrong, f"{what}: {wrong[:9]}"


def assert_known_errors(evidence: Evidence) -> None:
    """All errors are of those that a cluster is known for, and treated as they are."""
    unknown = evidence.codes() - KNOWN
    assert not unknown, f"{unknown} among {evidence.errors()}"
    # A lock timeout is not tried again; whoever asks for an id alone gets our errors.
    tried_again = {retry.code for retry in evidence.retries}
    assert "1205" not in tried_again, tried_again
    asked = {call.outcome for call in evidence.calls if call.kind == "ids"} - {"ok"}
    concurrency = {f"ConcurrencyError:{code}" for code in KNOWN - {"1205"}}
    assert asked <= {"ReservationTimeout:1205"} | concurrency, asked


def overlaps(evidence: Evidence, load: Load) -> bool:
    """Whether the processes of all nodes drew from the shared counter by turns."""
    drew = {span.seat for span in evidence.spans[SHARED]}
    return (
        drew == set(load.seats_of(load.cluster.nodes))
        and min(evidence.changes_of_owner()) >= FEWEST_CHANGES
    )


def assert_no_hang(evidence: Evidence, load: Load, faulty: list[Node]) -> None:
    """No call lasted longer than it may."""
    for node in load.cluster.nodes:
        longest = evidence.longest("ids", load.seats_of([node]))
        may_last = LONGEST if node in faulty else LONGEST_ELSEWHERE
        assert longest < may_last, f"{longest} s on {node}, faulty: {faulty}"
        # A request has up to three of them, and Django's own statements between.
        longest = evidence.longest("rows", load.seats_of([node]))
        assert longest < 3 * LONGEST, f"{longest} s on {node}, faulty: {faulty}"


def assert_nodes_agree(evidence: Evidence, load: Load) -> None:
    """All nodes have the same rows and counters, and those that the workers noted."""
    first, *others = (Contents(node) for node in load.cluster.nodes)
    for other in others:
        assert other.counters == first.counters, (other.counters, first.counters)
    stood, undone, open_ = (evidence.rows[fate] for fate in ("stood", "undone", "open"))
    for what, wrong in (
        *(("Not on all nodes", other.rows ^ first.rows) for other in others),
        ("Committed, but not in the table", stood - first.rows),
        ("Rolled back, but in the table", undone & first.rows),
        ("In the table, but nobody's", first.rows - stood - open_),
    ):
        assert not wrong, f"{what}: {sorted(wrong)[:9]}"
    for counter in evidence.given:
        highest = evidence.highest(counter)
        assert first.counters[counter] >= highest, (counter, highest)


class Contents:
    """What one node holds."""

    def __init__(self, node: Node) -> None:
        # Let the node apply what the others have committed.
        wait = "SET SESSION wsrep_sync_wait = 1", "USE hilo"
        orders = node.execute(*wait, "SELECT id FROM records_order")
        items = node.execute(*wait, "SELECT id FROM numbers_item")
        counters = node.execute(*wait, "SELECT id, max FROM django_hilo_hilodocument")
        self.rows = {_order(id) for (id,) in orders} | {(SHARED, id) for (id,) in items}
        self.counters = dict(counters)


def _order(id: str) -> tuple[str, int]:
    collection, _, end = id.partition("/")
    number, _, tag = end.partition("-")
    return f"{collection}/{tag}", int(number)


def figures(evidence: Evidence, load: Load, faulty: list[Node]) -> str:
    """Return what a run came to, in some lines."""
    numbers = sum(map(len, evidence.given.values()))
    ranges = sum(map(len, evidence.spans.values()))
    places = Counter(f"{retry.code} at {retry.place}" for retry in evidence.retries)
    longest = {
        node: [
            round(evidence.longest(kind, load.seats_of([node])), 1)
            for kind in ("ids", "rows")
        ]
        for node in load.cluster.nodes
    }
    in_time, by_number = evidence.changes_of_owner()
    return (
        f"{numbers} numbers, {len(evidence.repeated())} twice; {ranges} ranges, "
        f"at most {evidence.most_tries} tries for one; of the shared counter "
        f"{len(evidence.spans[SHARED])}, changes of owner in time / by number "
        f"{in_time} / {by_number}; {evidence.returned} ends of ranges went back, not: "
        f"{_counts(evidence.gaps)}\n"
        f"  tried again: {_counts(places)}\n"
        f"  errors of workers: {_counts(evidence.errors())}\n"
        f"  longest call in seconds, for an id and with rows: {longest}, "
        f"faulty: {faulty}"
    )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{n} x {what}" for what, n in counter.most_common()) or "none"
