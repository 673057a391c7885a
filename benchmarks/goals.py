"""The questions of the page, and a goal for each figure."""

from __future__ import annotations

from benchmarks.questions import Goal, Question


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
AUTO, UUID7 = "`BigAutoField`", "`UUIDField`, uuid7"
TEXT, INTEGER = "`HiLoField`", "`HiLoBigAutoField`"
MIXED = f"{TEXT}, lines {AUTO}"
LOOP = "`CharField`, ids of a loop"
CREATE, REQUEST = "`create()`", "request"
GRAPH = f"{TEXT}, 10,000 orders, whole time"
FAR_GRAPH = "10,000 orders of 5 lines"
LOAD = "`loaddata`"
LOAD_GOALS = (1.25, 1.15, 1.15)
SUITE, INTEGER_SUITE = f"100 tests, {TEXT}", f"100 tests, {INTEGER}"
SUITE_GOALS = (1.35, 1.3, 1.3)
ROWS_OF, OBJECTS, A_FILE = "plain rows", "objects", "`LOAD DATA`"
BULK = "`bulk_create()`"
RESERVATION = "a reservation"
NUMBER = "a number of django-sequences"
ROWS = "rows per second"
INSERT = f"multi-row `INSERT`, {TEXT}"
INDEXES = "all indexes"

QUESTIONS = (
    Question(
        "What does a save or a request cost?",
        "A request inserts an order with five lines in a transaction. Rows without "
        "*whole time* compare CPU time.",
        (
            _each("create_text", f"{CREATE}, {TEXT}", AUTO, (0.82, 0.82, 0.75)),
            _each("create_integer", f"{CREATE}, {INTEGER}", AUTO, (0.97, 0.88, 0.9)),
            _each("create_text_uuid7", f"{CREATE}, {TEXT}", UUID7, (0.7, 0.78, 0.75)),
            _each("request_text", f"{REQUEST}, {TEXT}", AUTO, (0.84, 0.88, 0.75)),
            _each("request_integer", f"{REQUEST}, {INTEGER}", AUTO, (0.85, 0.82, 0.75)),
            _at_least("create_auto", f"{CREATE}, {TEXT}, whole time", AUTO, 0.97),
            _at_least("request", f"{REQUEST}, {TEXT}, whole time", AUTO, 1.0),
        ),
        "create",
    ),
    Question(
        "What does a graph of objects cost?",
        "CPU time of 600 orders with five lines each, by `assign_ids()` and "
        "`bulk_create()`. On MySQL, `bulk_create()` returns no keys, so orders with a "
        "`BigAutoField` are saved one by one. The row *ids of a loop* compares with "
        "text keys that a project makes itself.",
        (
            _each("graph_text", TEXT, AUTO, (0.85, 0.82, 0.84)),
            _each("graph_integer", INTEGER, AUTO, (0.85, 0.84, 0.82)),
            _each("graph_mixed", MIXED, AUTO, (0.9, 0.9, 0.9)),
            _each("graph_text_uuid7", TEXT, UUID7, (0.9, 0.9, 0.9)),
            _each("graph_loop", TEXT, LOOP, (0.9, 0.87, 0.88)),
            _at_least("graph_auto", GRAPH, AUTO, 0.97),
            _at_least("graph_one_by_one", GRAPH, AUTO, 8),
        ),
        "graph",
    ),
    Question(
        "What does a test suite cost?",
        "CPU time of 100 tests in a `TestCase`, each of which creates an object of "
        "each of five models, and of `loaddata` with 50,000 rows.",
        (
            _each("suite_text", SUITE, AUTO, SUITE_GOALS, at_most=True),
            _each("suite_integer", INTEGER_SUITE, AUTO, SUITE_GOALS, at_most=True),
            _each("fixture_text", f"{LOAD}, {TEXT}", AUTO, LOAD_GOALS, at_most=True),
            _each(
                "fixture_integer", f"{LOAD}, {INTEGER}", AUTO, LOAD_GOALS, at_most=True
            ),
        ),
    ),
    Question(
        "What does a bulk load cost?",
        "50,000 [rows](../how-to/load-many-rows.md), from tuples to the commit, beside "
        "objects with a `BigAutoField` and `bulk_create()`; in CPU or whole time.",
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
        "Do many processes slow each other down?",
        "Rows per second of all processes together. With a counter row or "
        "django-sequences, each insert waits for the commits of the others. The plot "
        "shows how many ranges one counter can give.",
        (
            _at_least("processes_counter", ROWS, "a counter row per insert", 6),
            _at_least("processes_sequences", ROWS, "django-sequences", 2),
            _at_least("processes_auto", ROWS, AUTO, 0.97),
        ),
        "reservations-by-processes",
    ),
    Question(
        "What if the server is far away?",
        "Whole time with a server that answers 1 ms later.",
        (
            _at_least("request_far", REQUEST, AUTO, 1.0),
            _at_least("graph_auto_far", FAR_GRAPH, AUTO, 0.97),
            _at_least("graph_one_by_one_far", FAR_GRAPH, AUTO, 25),
            _at_most("reservation_far", RESERVATION, NUMBER, 4),
        ),
    ),
    Question(
        "How large are indexes?",
        "All indexes of 1,000,000 lines and their 200,000 orders on PostgreSQL. One "
        "process inserts its ids in order; eight insert in turn, each from its own "
        "ranges of 1,024 numbers. The `INSERT` is that of one process into a full "
        "table.",
        (
            _at_least("insert_uuid", INSERT, "uuid4", 1.2),
            _at_least("insert_bigint", INSERT, "bigint", 0.85),
        ),
        peers="indexes",
    ),
    Question(
        "What takes long in a large table?",
        "`MoveToHiLo` beside `CREATE TABLE AS SELECT` of the same two tables, and "
        "lookups with an [index](../how-to/lookups.md#indexes) on `id__number`.",
        (
            _at_most("move", "`MoveToHiLo`", "copies of the tables", 3),
            _at_most("highest", "`hilo_raise_max`, its query", "", 100, "ms"),
            _at_most("first_by_number", '`order_by("id__number")[:50]`', "", 100, "ms"),
        ),
    ),
    Question(
        "What does a process cost?",
        "CPU time of a new process until `ready()`, the whole time from "
        "`django.setup()` to the first saved row, and memory.",
        (
            _at_most("startup", "import and `ready()`, 200 models", "Django", 1.12),
            _at_most("first_row", "the first saved row", AUTO, 1.3),
            _at_most("memory", "a range in memory", "", 3072, "bytes"),
        ),
    ),
    Question(
        "What does an id cost?",
        "An id from memory (`next_ids()`: per id) beside ids that need no range. "
        "Ranges double while a process is busy, up to 1,048,576 numbers.",
        (
            _exactly(
                "reservations", "1,000,000 ids, one by one", "", 26, "reservations"
            ),
            _at_most("reservation", RESERVATION, NUMBER, 4),
        ),
        peers="ids",
    ),
)
# Only at the end of a run, and in `benchmarks.guard`.
OTHERS = (
    _at_least("iter_ids", "`next(iter_ids(Order))`", UUID4, 1.8),
    _at_least("next_id", "`next_id(Order)`", UUID4, 1.8),
    _at_least("next_number", "`next_number(Order)`", UUID4, 2.4),
    _at_least("anext_id", "`await anext_id(Order)`", UUID4, 1.1),
    _at_least("next_ids", "`next_ids(Order, 100_000)`, per id", UUID4, 17),
    _at_least("manager_next_id", "`Order.objects.next_id()`", UUID4, 0.8),
    _at_most("setting", "a read of a setting, without `HILO`", "", 100, "ns"),
    _at_most("construction", "time of `Order()`", "a `BigAutoField`'s", 1.1),
    _exactly(
        "next_ids_reservations", "`next_ids(Order, 100_000)`", "", 1, "reservations"
    ),
    _exactly("held", "unused, an hour after a burst", "", 4096, "numbers"),
    _exactly("create_statements", CREATE, "", 1, "statements"),
    _exactly("request_statements", REQUEST, "", 2, "statements"),
    _exactly("calls_create", CREATE, "", 175, "calls"),
    _exactly("calls_create_atomic", f"{CREATE} in atomic()", "", 197, "calls"),
    _exactly("calls_request", REQUEST, "", 752, "calls"),
    _exactly("calls_request_atomic", f"{REQUEST}, atomic()", "", 745, "calls"),
    _exactly("calls_refill", f"{CREATE} and its reservation", "", 3400, "calls"),
    _at_least("create_uuid7", CREATE, UUID7, 0.97),
    _at_least("graph_uuid", GRAPH, "`UUIDField`, uuid4", 1.2),
    _at_least("graph_uuid7", GRAPH, UUID7, 1.0),
    _at_least("graph_uuid_far", FAR_GRAPH, "`UUIDField`, uuid4", 1.2),
    _at_least("graph_uuid7_far", FAR_GRAPH, UUID7, 1.0),
    _at_least("transactions", "transactions of 20 ms", "`UUIDField`, uuid4", 0.95),
    _at_most("memory_threads", "a counter after two ids", "", 3072, "bytes"),
    _at_most("show", "`hilo_show`", "", 1, "seconds"),
    _at_most("changelist", "list in the admin", "", 1, "seconds"),
    _at_most("checks", "`check --deploy`", "", 1, "seconds"),
    _exactly("indexes_text", f"{INDEXES}, {TEXT}", "uuid4", 1.4),
    _exactly("indexes_wide", f"{INDEXES}, `width=10`", "uuid4", 1.05),
    _exactly("indexes_integer", f"{INDEXES}, {INTEGER}", "uuid4", 0.6),
)
SHOWN = tuple(goal for question in QUESTIONS for goal in question.goals)
GOALS = {goal.key: goal for goal in (*SHOWN, *OTHERS)}
