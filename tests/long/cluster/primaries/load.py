"""The worker processes on all nodes, and what they meet there."""

from collections.abc import Sequence
from pathlib import Path

from tests.long.cluster.evidence import Evidence, counter_of, number_of
from tests.long.cluster.load import Load, environment
from tests.long.cluster.primaries.cluster import DATABASE, Cluster, Primary
from tests.support.databases import ENGINES

WORKERS_PER_NODE = 2
# How long things may take, in seconds.
LOCK_TIMEOUT = 6.0
RETRY_FOR = 5.0
CONNECT_TIMEOUT = 2
# Over LOCK_TIMEOUT: an error of the server says more than a lost answer.
READ_TIMEOUT = 8

# The nodes are set to some 5 s (see node.py); a busy machine takes longer, and may let
# the caller wait as well.
EVICTION = 30.0
# What a call for an id may last on a node that nothing happened to ...
LONGEST_ELSEWHERE = LOCK_TIMEOUT + EVICTION
# ... and anywhere: the last try may begin when RETRY_FOR is nearly over.
LONGEST = RETRY_FOR + LOCK_TIMEOUT + CONNECT_TIMEOUT + READ_TIMEOUT + EVICTION
# The counter of integer keys: one row, whatever the node. Nodes collide at it.
SHARED = "numbers_item/"
LABELS = "numbers.Item", "numbers.Item", "records.Order"


class ClusterLoad(Load):
    """Two processes a node."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(folder)
        self.cluster = cluster

    def start_all(self, tag: str = "") -> None:
        """Start all, and wait until each has written rows."""
        for node in self.cluster.nodes:
            self.start(WORKERS_PER_NODE, environment_on(node, tag=tag), *LABELS)
        self.wait_for_progress()

    def seats_of(self, nodes: Sequence[Primary]) -> list[int]:
        """Return the workers of some nodes."""
        seats = [n for n in self.cluster.nodes for _ in range(WORKERS_PER_NODE)]
        return [s for s in self.seats() if seats[s % len(seats)] in nodes]

    def wait_for_progress(
        self, nodes: Sequence[Primary] | None = None, rows: int = 30
    ) -> None:
        """Wait until each worker of the nodes (of all) has written some more rows."""
        self.wait_for("stood", self.seats_of(nodes or self.cluster.nodes), rows)

    def wait_for_refusals(self, nodes: Sequence[Primary]) -> None:
        """Wait until each worker of the nodes got no id, but an error."""
        self.wait_for("no id", self.seats_of(nodes))

    def longest(self, evidence: Evidence, faulty: list[Primary]) -> str:
        """Return how long calls lasted on faulty nodes and on the others."""
        said = []
        for nodes in faulty, [n for n in self.cluster.nodes if n not in faulty]:
            seats = self.seats_of(nodes)
            ids, rows = evidence.longest("ids", seats), evidence.longest("rows", seats)
            said.append(f"{', '.join(map(str, nodes))}: {ids:.1f} s, {rows:.1f} s")
        return f"longest call for an id, and for rows: {'; '.join(said)}"

    def assert_no_hang(self, evidence: Evidence, faulty: list[Primary]) -> None:
        """No call lasted longer than it may."""
        for node in self.cluster.nodes:
            longest = evidence.longest("ids", self.seats_of([node]))
            may_last = LONGEST if node in faulty else LONGEST_ELSEWHERE
            assert longest < may_last, f"{longest} s on {node}, faulty: {faulty}"
            # A request has up to three of them, and Django's own statements between.
            longest = evidence.longest("rows", self.seats_of([node]))
            assert longest < 3 * LONGEST, f"{longest} s on {node}, faulty: {faulty}"

    def assert_nodes_agree(self, evidence: Evidence) -> None:
        """All nodes have the same rows and counters, and those that workers noted."""
        (rows, counters), *others = map(contents, self.cluster.nodes)
        for other_rows, other_counters in others:
            assert other_counters == counters, (other_counters, counters)
            assert not other_rows ^ rows, sorted(other_rows ^ rows)[:9]
        stood, undone = evidence.rows["stood"], evidence.rows["undone"]
        for what, wrong in (
            ("Committed, but not in the table", stood - rows),
            ("Rolled back, but in the table", undone & rows),
            ("In the table, but nobody's", rows - stood - evidence.rows["open"]),
        ):
            assert not wrong, f"{what}: {sorted(wrong)[:9]}"
        for _, _, id in evidence.given:
            assert counters[counter_of(id)] >= number_of(id), (id, counters)

    def assert_known_errors(self, evidence: Evidence) -> None:
        """All errors are of those that a cluster is known for, and treated as such."""
        codes = {outcome.rpartition(":")[2] for outcome in evidence.errors()}
        tried_again = {code for code, _ in evidence.retries}
        codes |= tried_again | {code for code, _ in evidence.warnings}
        known, empty = self.cluster.kind.known, self.cluster.kind.empty
        unknown = codes - known - empty
        assert not unknown, f"{unknown} among {evidence}, {evidence.warnings}"
        # Neither a lock timeout nor a missing database is tried again; but for that,
        # a call for an id alone gets our errors.
        assert not tried_again & {"1205", *empty}
        assert tried_again or not any(
            "Concurrency" in said for said in evidence.errors()
        )
        asked = {call.outcome for call in evidence.calls if call.kind == "ids"} - {"ok"}
        concurrency = {f"ConcurrencyError:{code}" for code in known - {"1205"}}
        missing = {f"OperationalError:{code}" for code in empty}
        assert asked <= {"ReservationTimeout:1205"} | concurrency | missing, asked


def contents(node: Primary) -> tuple[set[str], dict[str, int]]:
    """Return the ids of a node's rows, and Max of its counters."""
    orders = node.read("SELECT id FROM records_order")
    items = node.read("SELECT id FROM numbers_item")
    counters = node.read("SELECT id, max FROM django_hilo_hilodocument")
    rows = {id for (id,) in orders} | {f"{SHARED}{id}" for (id,) in items}
    return rows, dict(counters)


def environment_on(node: Primary, patience: int = 0, tag: str = "") -> dict[str, str]:
    """Return the environment of a Django process on a node, of its tag or another.

    ``patience``: seconds for whatever it waits for.
    """
    return environment(
        {
            "ENGINE": ENGINES["mariadb"],
            "NAME": DATABASE,
            "USER": "root",
            "HOST": "127.0.0.1",
            "PORT": node.port,
            "OPTIONS": {
                "charset": "utf8mb4",
                "isolation_level": "read committed",
                "connect_timeout": patience or CONNECT_TIMEOUT,
                "read_timeout": patience or READ_TIMEOUT,
                "write_timeout": patience or READ_TIMEOUT,
            },
        },
        NODE_TAG=tag or node.tag,
        LOCK_TIMEOUT=patience or LOCK_TIMEOUT,
        RETRY_FOR=patience or RETRY_FOR,
    )
