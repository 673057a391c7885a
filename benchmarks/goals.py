"""The questions that the benchmarks answer, and a goal for each figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """A bar for one figure; ``at_most`` where less is better.

    ``exact`` figures are counts and sizes, which are the same on a busy machine.
    """

    key: str
    what: str
    beside: str
    goal: float
    unit: str = "x"
    at_most: bool = False
    exact: bool = False
    # Other bars, by the database.
    on: Mapping[str, float] = field(default_factory=dict)

    def bar(self, where: str) -> float:
        """Return what a figure should reach in a place."""
        return self.on.get(where, self.goal)

    def is_met(self, figure: float, where: str = "") -> bool:
        """Whether a figure reaches the goal."""
        bar = self.bar(where)
        return figure <= bar if self.at_most else figure >= bar


@dataclass(frozen=True)
class Question:
    """What a reader asks; ``answer`` says what was run, and what rivals cannot do."""

    title: str
    answer: str
    goals: tuple[Goal, ...]
    # The plot below the table, by its file's name.
    picture: str = ""


def _at_least(key: str, what: str, beside: str, goal: float) -> Goal:
    return Goal(key, what, beside, goal)


def _at_most(key: str, what: str, beside: str, goal: float, unit: str = "x") -> Goal:
    return Goal(key, what, beside, goal, unit, at_most=True)


def _each(
    key: str,
    what: str,
    beside: str,
    goals: tuple[float, float, float],
    *,
    at_most: bool = False,
) -> Goal:
    """Return a goal with bars for SQLite, for PostgreSQL, and for the others."""
    sqlite, postgresql, others = goals
    on = {"SQLite": sqlite, "PostgreSQL": postgresql}
    return Goal(key, what, beside, others, at_most=at_most, on=on)


def _exactly(key: str, what: str, beside: str, goal: float, unit: str = "x") -> Goal:
    return Goal(key, what, beside, goal, unit, at_most=True, exact=True)


UUID4 = "`str(uuid.uuid4())`"
GRAPH = "10,000 orders of 5 lines"
REQUEST = "request: an order with 5 lines"
CREATE = "`create()`"
ROWS = "rows per second"
AUTO = "`BigAutoField`"
TEXT, INTEGER = "`HiLoField`", "`HiLoBigAutoField`"
MIXED = f"{TEXT}, lines {AUTO}"
LOOP = "`CharField`, ids of a loop"
GRAPH_600 = "600 orders of 5 lines"
LOAD = "`loaddata`"
LOAD_GOALS = (1.25, 1.15, 1.15)
SUITE, INTEGER_SUITE = f"100 tests, {TEXT}", f"100 tests, {INTEGER}"
SUITE_GOALS = (1.35, 1.3, 1.3)
ROWS_OF, OBJECTS, A_FILE = "plain rows", "objects", "`LOAD DATA`"
BULK = "`bulk_create()`"
INSERT = "multi-row `INSERT`"
WITHOUT = "without `PREFETCH_AT`"
INDEXES = "all indexes"

QUESTIONS = (
    Question(
        "How long does an id take?",
        "An id comes out of a range in memory. uuid4, uuid7, ULID and snowflake ids "
        "need no range, but are long and hard to read. A sequence needs a query per "
        "number.",
        (
            _at_least("iter_ids", "`next(iter_ids(Order))`", UUID4, 5),
            _at_least("next_id", "`next_id(Order)`", UUID4, 1.8),
            _at_least("next_number", "`next_number(Order)`", UUID4, 2.4),
            _at_least("anext_id", "`await anext_id(Order)`", UUID4, 1.1),
            _at_least("next_ids", "`next_ids(Order, 100_000)`, per id", UUID4, 17),
            _at_least("manager_next_id", "`Order.objects.next_id()`", UUID4, 1.2),
            _at_most("setting", "a read of a setting, without `HILO`", "", 100, "ns"),
        ),
        "ids",
    ),
    Question(
        "How often does it go to the database?",
        "Ranges double up to 1,048,576 numbers while a process is busy. After a burst "
        "of 1,050,000 ids, the process took an id a second for an hour, on a fast "
        "clock, and returned what it hardly used. A reservation is a transaction of "
        "its own with five round trips on PostgreSQL; django-sequences makes one "
        "round trip, for one number.",
        (
            _exactly(
                "reservations", "1,000,000 ids, one by one", "", 26, "reservations"
            ),
            _exactly(
                "next_ids_reservations",
                "`next_ids(Order, 100_000)`",
                "",
                1,
                "reservations",
            ),
            _exactly("held", "unused, an hour after a burst", "", 4096, "numbers"),
            _at_most("reservation", "a reservation", "django-sequences' number", 4),
        ),
        "ids-by-range",
    ),
    Question(
        "Does saving a row take longer?",
        "Rows by `create()`: 50 in one transaction, or 10 that commit one by one. "
        "The INSERT takes 25 to over 1,000 times as long as making an id, so no key "
        "makes it much faster.",
        (
            _exactly("create_statements", CREATE, "", 1, "statements"),
            _at_least("create_auto", CREATE, "`BigAutoField`", 0.97),
            _at_least("create_uuid7", CREATE, "`UUIDField`, uuid7", 0.97),
            _exactly("calls_create", CREATE, "", 182, "calls"),
            _exactly("calls_create_atomic", f"{CREATE} in atomic()", "", 208, "calls"),
            _exactly("calls_request", REQUEST, "", 804, "calls"),
            _exactly("calls_request_atomic", f"{REQUEST}, atomic()", "", 828, "calls"),
        ),
        "create",
    ),
    Question(
        "How long do keys keep the processor busy?",
        "The processor's time of the program, without that of a server: 50 rows by "
        "`create()` in one transaction, 600 orders of 5 lines by `bulk_create()`, "
        "and 50,000 rows by `loaddata` in a new process. *CharField, ids of a loop* "
        "is what text keys cost without django-hilo.",
        (
            _each("create_integer", f"{CREATE}, {INTEGER}", AUTO, (0.97, 0.88, 0.9)),
            _each("graph_text", f"{GRAPH_600}, {TEXT}", AUTO, (0.85, 0.82, 0.84)),
            _each("graph_loop", f"{GRAPH_600}, {TEXT}", LOOP, (0.9, 0.87, 0.88)),
            _each("graph_integer", f"{GRAPH_600}, {INTEGER}", AUTO, (0.85, 0.84, 0.82)),
            _each("graph_mixed", f"{GRAPH_600}, {MIXED}", AUTO, (0.9, 0.9, 0.9)),
            _each("fixture_text", f"{LOAD}, {TEXT}", AUTO, LOAD_GOALS, at_most=True),
            _each(
                "fixture_integer", f"{LOAD}, {INTEGER}", AUTO, LOAD_GOALS, at_most=True
            ),
        ),
    ),
    Question(
        "How fast can many rows be loaded?",
        "50,000 [rows](../how-to/load-many-rows.md), from tuples to the commit: the "
        "program's processor time, and the whole time. `bulk_create()` creates objects "
        "with a `BigAutoField`.",
        (
            _at_least("load_rows", ROWS_OF, BULK, 5),
            _at_least("load_rows_wall", f"{ROWS_OF}, whole time", BULK, 2.5),
            _at_least("load_file", A_FILE, BULK, 10),
            _at_least("load_file_wall", f"{A_FILE}, whole time", BULK, 3),
            _at_least("load_objects", OBJECTS, BULK, 1.4),
            _at_least("load_objects_wall", f"{OBJECTS}, whole time", BULK, 1.2),
        ),
    ),
    Question(
        "How much longer does a test suite take?",
        "The processor's time of 100 tests in a `TestCase`, each of which creates an "
        "object of each of five models: every id is the first of its counter.",
        (
            _each("suite_text", SUITE, AUTO, SUITE_GOALS, at_most=True),
            _each("suite_integer", INTEGER_SUITE, AUTO, SUITE_GOALS, at_most=True),
        ),
    ),
    Question(
        "What do ids known in advance bring to a graph?",
        "From the first `Order()` to the commit. On MySQL, `bulk_create()` returns "
        "no keys, so orders with a `BigAutoField` are saved one by one. Text keys cost "
        "time to send, to index and to check: the plot's *CharField, ids of a loop* "
        "shows this cost alone, without django-hilo.",
        (
            _at_least("graph_one_by_one", GRAPH, "`BigAutoField`", 8),
            _at_least("graph_one_by_one_far", GRAPH, "`BigAutoField`", 25),
            _at_least("graph_auto", GRAPH, "`BigAutoField`, RETURNING", 0.97),
            _at_least("graph_uuid", GRAPH, "`UUIDField`, uuid4", 1.2),
            _at_least("graph_uuid7", GRAPH, "`UUIDField`, uuid7", 1.0),
            _at_least("request", REQUEST, "`BigAutoField`", 1.0),
            _exactly("request_statements", REQUEST, "", 2, "statements"),
        ),
        "graph",
    ),
    Question(
        "Do many processes slow each other down?",
        "Processes that have been at work, and have enough numbers, create rows. Rows "
        "of a counter table and of django-sequences wait for one another; ranges do "
        "not.",
        (
            _at_least("processes_counter", ROWS, "a counter row per insert", 6),
            _at_least("processes_sequences", ROWS, "django-sequences", 2),
            _at_least("processes_auto", ROWS, "`BigAutoField`", 0.97),
            _at_least(
                "transactions", "transactions of 20 ms", "`UUIDField`, uuid4", 0.95
            ),
        ),
        "reservations-by-processes",
    ),
    Question(
        "How long does a save wait for a new range?",
        "Rows are saved with ranges of 32 numbers. With `PREFETCH_AT`, a thread "
        "reserves the next range in advance. A sequence waits for each number.",
        (
            _at_most("waits", "wait for an id, 99.9th percentile", WITHOUT, 0.1),
            _at_most("saves_prefetch", "id and save, median", WITHOUT, 1.05),
        ),
        "waiting-by-processes",
    ),
    Question(
        "What does a new process pay?",
        "The processor's time of a new process, beside Django with `auth` and "
        "`contenttypes`; and the time from `django.setup()` to the first saved row.",
        (
            _at_most("startup", "import and `ready()`", "Django alone", 1.12),
            _at_most("first_row", "the first saved row", "`BigAutoField`", 1.3),
        ),
    ),
    Question(
        "How much memory does it take?",
        "A held range is two numbers. Each of the 10,000 counters gave one id to the "
        "main thread, then one to one of 1,000 threads.",
        (
            _at_most("memory", "a busy counter", "", 3072, "bytes"),
            _at_most("memory_threads", "a counter after two ids", "", 3072, "bytes"),
            _at_most("construction", "time of `Order()`", "a `BigAutoField`'s", 1.1),
        ),
        "memory-by-collections",
    ),
    Question(
        "How long do operators wait with many counters?",
        "500 tenants have 20 counters each. The admin shows a page of the list.",
        (
            _at_most("show", "`hilo_show`", "", 1, "seconds"),
            _at_most("changelist", "list in the admin", "", 1, "seconds"),
            _at_most("checks", "`check --deploy`", "", 1, "seconds"),
        ),
    ),
    Question(
        "What do text keys cost in a large table?",
        "A million lines and their 200,000 orders, inserted in the order in which "
        "their ids were made, with the indexes that Django creates. The `INSERT` adds "
        "20,000 rows to a million. `HiLoField(width=10)` pads numbers with zeros.",
        (
            _exactly("indexes_text", f"{INDEXES}, `HiLoField`", "uuid4", 1.4),
            _exactly("indexes_wide", f"{INDEXES}, `width=10`", "uuid4", 1.05),
            _exactly("indexes_integer", f"{INDEXES}, `HiLoBigAutoField`", "uuid4", 0.6),
            _at_least("insert_uuid", INSERT, "uuid4", 1.2),
            _at_least("insert_bigint", INSERT, "bigint", 0.85),
        ),
        "indexes",
    ),
    Question(
        "What takes long in a large table?",
        "`MoveToHiLo` beside `CREATE TABLE AS SELECT` of the moved tables, with the "
        "same indexes: two tables, one refers to the other. Lookups by number use "
        "the [index](../how-to/lookups.md#indexes) on `id__number`.",
        (
            _at_most("move", "`MoveToHiLo`", "copies of the tables", 3),
            _at_most("highest", "`hilo_raise_max`, its query", "", 100, "ms"),
            _at_most("first_by_number", '`order_by("id__number")[:50]`', "", 100, "ms"),
        ),
    ),
)
GOALS = {goal.key: goal for question in QUESTIONS for goal in question.goals}
