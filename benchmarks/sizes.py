"""Indexes after inserts of one process or of several, and inserts into large tables."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from django.db import connections

from benchmarks.bench import Bench
from benchmarks.databases import POSTGRES, TITLES, empty
from benchmarks.keys import AUTO, HILO, INTEGER, OURS, UUID7, new_keys
from benchmarks.processes import in_turn
from benchmarks.results import Finding, Peers, Result, Skipped
from benchmarks.rounds import Spread, interleaved, ratio, seconds_of, spreads
from benchmarks.shop.models import (
    AutoLine,
    AutoOrder,
    Line,
    NumberLine,
    NumberOrder,
    Order,
    Uuid7Line,
    Uuid7Order,
    UuidLine,
    UuidOrder,
    WideLine,
    WideOrder,
)

ROWS = 1_000_000
# Of the guard.
GUARDED = 100_000
# Of an order.
LINES = 5
# That insert in turn, each out of ranges of its own; and the numbers in a range.
WRITERS = 8
RANGE = 1024
UUID4 = "`UUIDField`, uuid4"
PAIRS = {
    # django-sequences gives the same numbers in the same order.
    "`BigAutoField`, django-sequences": (AutoOrder, AutoLine),
    "`HiLoBigAutoField`": (NumberOrder, NumberLine),
    "`UUIDField`, uuid7": (Uuid7Order, Uuid7Line),
    UUID4: (UuidOrder, UuidLine),
    "`HiLoField(width=10)`": (WideOrder, WideLine),
    "`HiLoField`": (Order, Line),
}
RATIOS = {
    "indexes_text": "`HiLoField`",
    "indexes_wide": "`HiLoField(width=10)`",
    "indexes_integer": "`HiLoBigAutoField`",
}
INSERTED = {
    HILO: Order,
    INTEGER: NumberOrder,
    AUTO: AutoOrder,
    "uuid4": UuidOrder,
    UUID7: Uuid7Order,
}
RIVALS = {"": AUTO, "_uuid7": UUID7, "_uuid4": "uuid4"}
AT_ONCE = 20_000
A_STATEMENT = 1_000
MEGABYTE = 2**20
# The table on the page.
INDEXES = "indexes"


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on PostgreSQL, which tells the size of indexes to the page."""
    if not bench.has(POSTGRES):
        yield Skipped("sizes of indexes, and large tables: set HILO_TEST_POSTGRES.")
        return
    rows = bench.scaled(ROWS, ROWS // 10)
    yield from indexes(POSTGRES, rows, (1, WRITERS))
    yield from inserts(bench, POSTGRES, rows)
    yield Skipped("joins on text keys.")


def indexes(
    using: str, rows: int, processes: Sequence[int] = (1,)
) -> Iterator[Finding]:
    """Compare the indexes of orders and of so many lines, of some processes."""
    found: dict[int, dict[str, float]] = {writers: {} for writers in processes}
    for name, (order, line) in PAIRS.items():
        of_orders, of_lines = keys(order, using, rows // LINES), keys(line, using, rows)
        for writers, sizes in found.items():
            orders = load(order, using, rows // LINES, of_orders, writers)
            load(line, using, rows, of_lines, writers, orders)
            sizes[name] = index_bytes(using, order, line) / MEGABYTE
            empty(using, order, line)
    for key, name in RATIOS.items():
        figure = Spread.of([found[1][name] / found[1][UUID4]])
        yield Result(key, f"{TITLES[using]}, {rows:,} lines", figure)
    for writers, sizes in found.items():
        title = "MB, one process" if writers == 1 else f"MB, {writers} processes"
        candidates = {name: Spread.of([size]) for name, size in sizes.items()}
        yield Peers(title, "MB", candidates, INDEXES)


def inserts(bench: Bench, using: str, rows: int) -> Iterator[Finding]:
    """Compare the rows that a table takes in a second when it has many."""
    for model in INSERTED.values():
        load(model, using, rows, keys(model, using, rows))
    where = f"{TITLES[using]}, {rows:,} rows"
    turns = {name: partial(_turn, model, using) for name, model in INSERTED.items()}
    figures = interleaved(turns, bench.scaled(15, 5), bench.seconds(30), bench.seed)
    for key, ours in OURS.items():
        for end, rival in RIVALS.items():
            against = ratio(figures, ours, rival)
            yield Result(
                f"insert{key}{end}", where, against, spreads(figures), "rows/s"
            )
    empty(using, *INSERTED.values())


def keys(model: Any, using: str, count: int) -> Sequence[Any] | None:
    """Return new keys, or none where the database gives them."""
    if hasattr(model.objects, "next_ids"):
        return model.objects.using(using).next_ids(count)
    if model in (UuidOrder, UuidLine):
        bits = random.Random(f"{model}{count}").getrandbits
        return [uuid.UUID(int=bits(128), version=4) for _ in range(count)]
    if model in (Uuid7Order, Uuid7Line):
        return [model._meta.pk.get_default() for _ in range(count)]
    return None


def load(
    model: Any,
    using: str,
    count: int,
    ids: Sequence[Any] | None,
    writers: int = 1,
    orders: Sequence[Any] | None = None,
) -> Sequence[Any]:
    """Insert rows of one process, or of some in turn, by COPY; return their ids."""
    if ids and hasattr(model.objects, "next_ids"):
        ids = in_turn(ids, writers, RANGE)
    table = model._meta.db_table
    columns = ["name", "quantity", *["order_id"] * bool(orders), *["id"] * bool(ids)]
    head = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connections[using].cursor() as cursor, cursor.copy(head) as rows:
        for number in range(count):
            # The order that its process inserted.
            place = number // (LINES * writers) * writers + number % writers
            order = f"\t{orders[place]}" if orders else ""
            id = f"\t{ids[number]}" if ids else ""
            rows.write(f"chai\t{number}{order}{id}\n")
    if ids is None:
        stored = model.objects.using(using).order_by("id")
        return list(stored.values_list("id", flat=True))
    return ids


def index_bytes(using: str, *models: Any) -> int:
    """Return what the indexes of some tables take."""
    total = 0
    with connections[using].cursor() as cursor:
        for model in models:
            cursor.execute("SELECT pg_indexes_size(%s)", [model._meta.db_table])
            total += cursor.fetchone()[0]
    return total


def _turn(model: Any, using: str) -> float:
    ids = _new(model, using)
    return AT_ONCE / seconds_of(partial(_by_values, model, using, ids))


def _by_values(model: Any, using: str, ids: Sequence[Any]) -> None:
    """Insert as any language does: all rows of a statement after VALUES."""
    head = f"INSERT INTO {model._meta.db_table} (name, quantity, id) VALUES "
    with connections[using].cursor() as cursor:
        for start in range(0, AT_ONCE, A_STATEMENT):
            some = ids[start : start + A_STATEMENT]
            rows = [("chai", start + n, id) for n, id in enumerate(some)]
            marks = ", ".join(["(%s, %s, %s)"] * len(rows))
            cursor.execute(head + marks, list(chain.from_iterable(rows)))


def _new(model: Any, using: str) -> Sequence[Any]:
    if model is UuidOrder:
        return [uuid.uuid4() for _ in range(AT_ONCE)]
    return new_keys(model, using, AT_ONCE)
