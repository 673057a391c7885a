"""What is promised: each goal, and the floor under which a release is refused."""

from __future__ import annotations

from dataclasses import dataclass

# The share of a floor that a busy machine must reach.
BUSY = 0.6


@dataclass(frozen=True)
class Goal:
    """A bar for one figure; ``at_most`` where less is better."""

    key: str
    what: str
    against: str
    goal: float
    floor: float
    unit: str = "x"
    at_most: bool = False
    # Counts and sizes, which a busy machine does not change.
    exact: bool = False

    def is_met(self, figure: float) -> bool:
        """Whether a figure reaches the goal."""
        return self._reaches(figure, self.goal)

    def holds(self, figure: float) -> bool:
        """Whether a figure reaches the floor."""
        return self._reaches(figure, self.floor)

    def guards(self, figure: float) -> bool:
        """Whether a figure of a busy machine is good enough."""
        return self._reaches(figure, self.bar)

    @property
    def bar(self) -> float:
        """What a busy machine must reach."""
        if self.exact:
            return self.floor
        return self.floor / BUSY if self.at_most else self.floor * BUSY

    def _reaches(self, figure: float, bar: float) -> bool:
        return figure <= bar if self.at_most else figure >= bar


def _times(key: str, what: str, against: str, goal: float, floor: float) -> Goal:
    return Goal(key, what, against, goal, floor)


def _at_most(
    key: str, what: str, against: str, goal: float, floor: float, unit: str = "x"
) -> Goal:
    return Goal(key, what, against, goal, floor, unit, at_most=True)


def _exactly(
    key: str, what: str, against: str, goal: float, floor: float, unit: str = "x"
) -> Goal:
    return Goal(key, what, against, goal, floor, unit, at_most=True, exact=True)


UUID4 = "`str(uuid.uuid4())`"
INDEXES = "indexes of orders and lines, 1,000,000 rows"
GRAPH = "10,000 orders of 5 lines, all ids before any insert"

GOALS = {
    goal.key: goal
    for goal in (
        _times("iter_ids", "`next(ids)` of `ids = iter_ids(Order)`", UUID4, 25, 15),
        _times(
            "iter_ids_rust", "the same", "`str(uuid_utils.uuid4())`, Rust", 1.5, 1.0
        ),
        _times("next_id", "`next_id(Order)`", UUID4, 15, 8),
        _times("manager_next_id", "`Order.objects.next_id()`", UUID4, 8, 4),
        _times("next_ids", "`next_ids(Order, 100_000)`, an id", UUID4, 30, 20),
        _exactly(
            "next_ids_reservations",
            "`next_ids(Order, 100_000)`",
            "",
            1,
            1,
            "reservations",
        ),
        _times("threads", "8 threads on one collection, ids/s", "1 thread", 0.9, 0.8),
        _exactly(
            "reservations",
            "1,000,000 ids in one process",
            "",
            26,
            30,
            "reservations",
        ),
        _at_most(
            "reservation", "time of a reservation", "a django-sequences call", 1.2, 3
        ),
        _times("create_auto", "`create()`", "`AutoField`", 1.0, 0.95),
        _times("create_uuid", "`create()`", "`UUIDField`", 1.0, 0.95),
        _exactly("create_statements", "`create()`", "", 1, 1, "statements"),
        _times(
            "processes_counter",
            "8 processes creating rows",
            "a counter row per insert",
            7,
            5,
        ),
        _times(
            "processes_sequences",
            "8 processes creating rows",
            "django-sequences",
            2.5,
            2,
        ),
        _times(
            "transactions",
            "writers with transactions of 20 ms",
            "`UUIDField`",
            0.97,
            0.95,
        ),
        _times("graph_auto", GRAPH, "`AutoField`", 1.05, 0.98),
        _times("graph_uuid", GRAPH, "uuid4", 1.3, 1.15),
        _at_most(
            "waits",
            "wait at a refill (range 32, an INSERT per id): p99.9 with prefetch",
            "without",
            1 / 40,
            1 / 10,
        ),
        _exactly("indexes_text", f"{INDEXES}: text", "native uuid4", 1.35, 1.4),
        _exactly("indexes_wide", f"{INDEXES}: fixed width", "native uuid4", 1.0, 1.05),
        _exactly("indexes_integer", f"{INDEXES}: integer", "native uuid4", 0.6, 0.62),
        _times(
            "insert_uuid", "multi-row `INSERT` into 1,000,000 rows", "uuid4", 1.4, 1.2
        ),
        _times(
            "insert_bigint",
            "multi-row `INSERT` into 1,000,000 rows",
            "bigint",
            0.9,
            0.85,
        ),
        _at_most(
            "construction", "time of `Order()`", "that of an `AutoField`", 1.05, 1.1
        ),
        _at_most("startup", "import and `ready()`", "Django's own", 15, 25, "ms more"),
        _at_most(
            "memory", "a held range of 1,048,576 numbers", "", 1024, 4096, "bytes"
        ),
    )
}
