"""The questions of the page, and a goal for each figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.questions import Goal, Question

# On SQLite, on PostgreSQL, and on the others.
Bars = tuple[float, float, float]


def _at_least(key: str, what: str, beside: str, goal: float) -> Goal:
    return Goal(key, what, beside, goal)


def _at_most(key: str, what: str, beside: str, goal: float, unit: str = "x") -> Goal:
    return Goal(key, what, beside, goal, unit, at_most=True)


def _each(key: str, what: str, beside: str, bars: Bars, is_shown: bool) -> Goal:
    """Return a goal with a bar for each database."""
    sqlite, postgresql, others = bars
    on = {"SQLite": sqlite, "PostgreSQL": postgresql}
    return Goal(key, what, beside, others, is_shown=is_shown, on=on)


def _exactly(key: str, what: str, beside: str, goal: float, unit: str = "x") -> Goal:
    return Goal(key, what, beside, goal, unit, at_most=True, exact=True)


UUID4 = "`str(uuid.uuid4())`"
AUTO, UUID7 = "`BigAutoField`", "`UUIDField`, uuid7"
SEQUENCES = "django-sequences"
LOOP = "`CharField`, ids of a loop"
TEXT, INTEGER, GAPLESS = "`HiLoField`", "`HiLoBigAutoField`", "`GaplessIdField`"
KEYS = {"_text": TEXT, "_integer": INTEGER}
RIVALS = {"": AUTO, "_uuid7": UUID7, "_sequences": SEQUENCES}
# What the rows of a clock say of it.
CPU, WHOLE = {"": ""}, {"": "", "_wall": ", whole time"}
ONE_BY_ONE = {"": "", "_wall": ", each committed, whole time"}
CREATE, REQUEST, GRAPH = "`create()`", "request", "graph"
ROWS, A_FILE = "bulk rows", "`LOAD DATA`"
TESTS, FIXTURE = "100 tests", "`loaddata`"
# Its keys come from the sequence before the objects are inserted, on PostgreSQL.
PREFETCHED = f"{AUTO}, `nextval()`"
# A `BigAutoField` whose keys the program doesn't know when it has inserted the rows.
UNKNOWN = f"{AUTO}, keys unknown"
RESERVATION = "a reservation (a whole range)"
NUMBER = "a number of django-sequences"
PROCESSES = "time per row"
INSERT = "multi-row `INSERT`"
INDEXES = "all indexes"


def _beside_each(
    task: str,
    what: str,
    clocks: Mapping[str, str] = CPU,
    rivals: Mapping[str, str] = RIVALS,
    bars: Mapping[str, Bars] = {},
    other: float = 0.75,
) -> Iterator[Goal]:
    """Yield a goal for both our keys beside each other one, by each clock."""
    for clock, said in clocks.items():
        for key, title in KEYS.items():
            for end, rival in rivals.items():
                name = f"{key}{end}{clock}"
                bar = bars.get(name, (other, other, other))
                label = f"{what}, {title}{said}"
                is_shown = title == TEXT or rival.startswith(AUTO)
                yield _each(f"{task}{name}", label, rival, bar, is_shown)


QUESTIONS = (
    Question(
        "What does a save cost?",
        "CPU time of rows in one transaction; whole time of rows that are committed "
        "one by one. django-sequences locks its counter until the commit, so its "
        "numbers have no gaps.",
        (
            *_beside_each(
                "create",
                CREATE,
                ONE_BY_ONE,
                bars={
                    "_text": (0.82, 0.82, 0.75),
                    "_integer": (0.97, 0.88, 0.9),
                    "_text_uuid7": (0.7, 0.78, 0.75),
                    "_text_wall": (0.97, 0.97, 0.97),
                },
            ),
            *(
                _at_least(
                    f"create_gapless{clock}",
                    f"{CREATE}, {GAPLESS}{said}",
                    SEQUENCES,
                    0.5,
                )
                for clock, said in ONE_BY_ONE.items()
            ),
        ),
        "create",
    ),
    Question(
        "What does a request cost?",
        "A request inserts an order with five lines in a transaction. Rows without "
        "*whole time* compare CPU time.",
        tuple(
            _beside_each(
                "request",
                REQUEST,
                WHOLE,
                bars={
                    "_text": (0.84, 0.88, 0.75),
                    "_integer": (0.85, 0.82, 0.75),
                    "_text_wall": (1.0, 1.0, 1.0),
                },
            )
        ),
    ),
    Question(
        "What does a graph of objects cost?",
        "2,000 orders with five lines each in a transaction, by `assign_ids()` and "
        "`bulk_create()`, in a process that has enough numbers. django-sequences, and "
        "`nextval()`, take all numbers of a table in one query. "
        "Rows without *whole time* compare CPU time. On MySQL, `bulk_create()` "
        "returns no keys, so orders with a `BigAutoField` are saved one by one. The "
        "row *ids of a loop* compares with text keys that a project makes itself.",
        (
            *_beside_each(
                "graph",
                GRAPH,
                WHOLE,
                bars={
                    "_text": (0.85, 0.82, 0.84),
                    "_integer": (0.88, 0.88, 0.88),
                    "_text_uuid7": (0.9, 0.9, 0.9),
                    "_text_wall": (0.97, 0.97, 0.97),
                },
            ),
            *(
                _at_least(
                    f"graph{key}_prefetched", f"{GRAPH}, {title}", PREFETCHED, 0.8
                )
                for key, title in KEYS.items()
            ),
            _at_least("graph_mixed", f"{GRAPH}, {TEXT}, lines {AUTO}", AUTO, 0.9),
            _at_least("graph_loop", f"{GRAPH}, {TEXT}", LOOP, 0.93),
        ),
        "graph",
    ),
    Question(
        "What does a test suite cost?",
        "CPU time of 100 tests in a `TestCase`, each of which creates an object of "
        "each of five models, and of `loaddata` with 5,000 rows.",
        (
            *_beside_each("suite", TESTS),
            *_beside_each("fixture", FIXTURE, other=0.85),
        ),
    ),
    Question(
        "What does a bulk load cost?",
        "50,000 [rows](../how-to/load-many-rows.md), from tuples to the commit: by "
        "COPY on PostgreSQL, by `executemany()` on the other databases. Rows without "
        "*whole time* compare CPU time. One query with `nextval()` gets the keys of a "
        "`BigAutoField` before the insert, on PostgreSQL only: AUTO_INCREMENT and "
        "SQLite's rowid can't give keys in advance. *Keys unknown* means that the "
        "database sets them, so the program can't send rows that refer to these. The "
        "last rows compare tuples with objects and `bulk_create()`, for each key. "
        "`LOAD DATA` needs a server that allows `local_infile`.",
        (
            *_beside_each(
                "load",
                ROWS,
                WHOLE,
                {
                    "": PREFETCHED,
                    "_unknown": UNKNOWN,
                    "_uuid7": UUID7,
                    "_sequences": SEQUENCES,
                },
                {"_text": (0.91, 0.91, 0.91), "_integer": (0.91, 0.91, 0.91)},
                0.5,
            ),
            *_beside_each(
                "file",
                A_FILE,
                WHOLE,
                {"_unknown": UNKNOWN, "_uuid7": UUID7, "_sequences": SEQUENCES},
                other=0.5,
            ),
            *(
                _at_least(
                    f"load_created_{name}{clock}",
                    f"{ROWS}, {key}{whole}",
                    f"`bulk_create()`, {own}",
                    bar,
                )
                for clock, whole, bar in (("", "", 5), ("_wall", ", whole time", 2))
                for name, key, own in (("text", TEXT, TEXT), ("auto", UNKNOWN, AUTO))
            ),
        ),
    ),
    Question(
        "Do many processes slow each other down?",
        "Time per row of all processes together, on the cores named below. With a "
        "counter row or django-sequences, each insert waits for the commits of the "
        "others. The plot shows how many ranges one counter can give.",
        tuple(
            _beside_each(
                "processes",
                PROCESSES,
                rivals={
                    "": AUTO,
                    "_uuid7": UUID7,
                    "_sequences": SEQUENCES,
                    "_counter": "a counter row per insert",
                },
                bars={"_text": (0.97, 0.97, 0.97), "_text_sequences": (2, 2, 2)},
            )
        ),
        "reservations-by-processes",
    ),
    Question(
        "What if the server is far away?",
        "Whole time with a server that answers 1 or 10 ms later. A graph, whose orders "
        "have five lines each, makes two reservations, a request none. On MySQL, "
        "orders with a `BigAutoField` are saved one by one.",
        (
            *_beside_each("request", REQUEST, {"_far": ""}, other=0.95),
            *_beside_each(
                "graph",
                GRAPH,
                {"_far": ""},
                bars={
                    "_text_far": (0.83, 0.83, 0.83),
                    "_integer_far": (0.89, 0.89, 0.89),
                },
            ),
            *(
                _at_least(
                    f"graph{key}_prefetched_far", f"{GRAPH}, {title}", PREFETCHED, 0.6
                )
                for key, title in KEYS.items()
            ),
            _at_least("graph_loop_far", f"{GRAPH}, {TEXT}", LOOP, 0.93),
            _at_most("reservation_far", RESERVATION, NUMBER, 4),
        ),
    ),
    Question(
        "How large are indexes?",
        "All indexes of 1,000,000 lines and their 200,000 orders on PostgreSQL. One "
        "process inserts its ids in order; eight insert in turn, each from its own "
        "ranges of 1,024 numbers. The `INSERT`, in whole time, is that of one process "
        "into a table of that size; its keys are there before.",
        tuple(
            _beside_each(
                "insert",
                INSERT,
                rivals={"": AUTO, "_uuid7": UUID7, "_uuid4": "`UUIDField`, uuid4"},
                bars={"_text": (0.85, 0.85, 0.85), "_text_uuid4": (1.2, 1.2, 1.2)},
                other=0.9,
            )
        ),
        peers="indexes",
    ),
    Question(
        "What do people see with four workers?",
        "Four new processes create an object in turn, and then another one each.",
        (),
        seen="workers",
    ),
    Question(
        "What takes long in a large table?",
        "`MoveToHiLo` beside copies of the same two tables, by "
        "`CREATE TABLE AS SELECT` and `CREATE INDEX`. Then "
        "lookups with an [index](../how-to/lookups.md#indexes) on `id__number`, each "
        "followed by the same lookup of a `BigAutoField`.",
        (
            _at_most("move", "`MoveToHiLo`", "copies of the tables", 3),
            _at_most("highest", "`hilo_raise_max`, its query", "", 100, "ms"),
            _at_most("highest_auto", f"`Max()` of {AUTO}", "", 100, "ms"),
            _at_most("first_by_number", '`order_by("id__number")[:50]`', "", 100, "ms"),
            _at_most("first_auto", f'`order_by("id")[:50]`, {AUTO}', "", 100, "ms"),
        ),
    ),
    Question(
        "What does a process cost?",
        "CPU time of a new process until `ready()`, the whole time from "
        "`django.setup()` to the first saved row, and memory.",
        (
            _at_most("startup", "import and `ready()`, 200 models", "Django", 1.12),
            _at_most("first_row", "start and the first saved row", AUTO, 1.3),
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
    _exactly("create_statements", CREATE, "", 1, "statements"),
    _exactly("request_statements", REQUEST, "", 2, "statements"),
    _exactly("calls_create", CREATE, "", 175, "calls"),
    _exactly("calls_create_atomic", f"{CREATE} in atomic()", "", 197, "calls"),
    _exactly("calls_request", REQUEST, "", 752, "calls"),
    _exactly("calls_request_atomic", f"{REQUEST}, atomic()", "", 745, "calls"),
    # Of integers, which also raise the column's default on SQLite.
    _exactly("calls_refill", f"{CREATE} and its reservation", "", 3560, "calls"),
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
