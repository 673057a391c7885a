"""Many rows at once, as docs/how-to/load-many-rows.md has them, with each kind of key.

``LOAD DATA`` is measured where the server allows it (``local_infile``).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Any

import uuid_utils
from django.db import connections, transaction

from benchmarks.bench import Bench
from benchmarks.databases import MARIADB, MYSQL, POSTGRES, TITLES, empty
from benchmarks.keys import (
    AUTO,
    HILO,
    INTEGER,
    MODELS,
    RIVALS,
    SEQUENCES,
    UUID7,
    beside_each,
    new_keys,
)
from benchmarks.results import Finding, Result, compared
from benchmarks.rounds import Taken, by_clock, interleaved, taken

ROWS = 50_000
NAMES: tuple[str, ...] = ("name", "quantity")
# Without keys in the program: the database sets them.
UNKNOWN = "BigAutoField, keys unknown"
CREATED = {HILO: "HiLoField, bulk_create()", AUTO: "BigAutoField, bulk_create()"}

Send = Callable[[str, Any, Sequence[str], Iterable[Sequence[Any]]], None]


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare on each database."""
    rows = [("chai", number) for number in range(bench.scaled(ROWS, ROWS // 10))]
    for alias in bench.aliases:
        yield from loads(bench, alias, rows)
        if _may_load_files(alias):
            yield from files(bench, alias, rows)
        empty(alias, *(order for order, _ in MODELS.values()))


def loads(bench: Bench, alias: str, rows: Any) -> Iterator[Result]:
    """Compare rows by COPY, or executemany(), and objects by bulk_create()."""
    send = _copy if alias == POSTGRES else _execute_many
    known = (HILO, INTEGER, UUID7, SEQUENCES, *[AUTO] * (alias == POSTGRES))
    turns = {name: partial(_turn, send, alias, name, rows) for name in known}
    turns[UNKNOWN] = partial(_turn, send, alias, AUTO, rows, is_known=False)
    for name, title in CREATED.items():
        turns[title] = partial(_created, alias, MODELS[name][0], rows)
    took = interleaved(turns, bench.scaled(15, 3), bench.seconds(40), bench.seed)
    rivals = {end: name for end, name in RIVALS.items() if name in known} | {
        "_unknown": UNKNOWN
    }
    for clock, figures in by_clock(took).items():
        yield from beside_each("load", figures, TITLES[alias], "ms", clock, rivals)
        pairs = {
            f"load_created_text{clock}": (CREATED[HILO], HILO),
            f"load_created_auto{clock}": (CREATED[AUTO], UNKNOWN),
        }
        yield from compared(figures, pairs, TITLES[alias], "ms")


def files(bench: Bench, alias: str, rows: Any) -> Iterator[Result]:
    """Compare rows by LOAD DATA."""
    known = (HILO, INTEGER, UUID7, SEQUENCES)
    turns = {name: partial(_turn, _load_file, alias, name, rows) for name in known}
    turns[UNKNOWN] = partial(_turn, _load_file, alias, AUTO, rows, is_known=False)
    took = interleaved(turns, bench.scaled(15, 3), bench.seconds(20), bench.seed)
    rivals = {"_unknown": UNKNOWN, "_uuid7": UUID7, "_sequences": SEQUENCES}
    for clock, figures in by_clock(took).items():
        yield from beside_each("file", figures, TITLES[alias], "ms", clock, rivals)


def _may_load_files(alias: str) -> bool:
    """Whether the server takes files of its clients; ask for it on our side."""
    if alias not in (MARIADB, MYSQL):
        return False
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@local_infile")
        may = bool(cursor.fetchone()[0])
    connection.settings_dict["OPTIONS"]["local_infile"] = True
    connection.close()
    return may


def _created(alias: str, model: Any, rows: Any) -> Taken:
    def create() -> None:
        objects = [model(name=name, quantity=quantity) for name, quantity in rows]
        model.objects.using(alias).bulk_create(objects)

    empty(alias, model)
    return taken(create)


def _turn(
    send: Send, alias: str, name: str, rows: Any, *, is_known: bool = True
) -> Taken:
    model: Any = MODELS[name][0]

    def load() -> None:
        names, keyed = NAMES, rows
        if is_known:
            keys = _keys(model, alias, len(rows))
            keyed = ((key, *row) for key, row in zip(keys, rows, strict=True))
            names = ("id", *NAMES)
        with transaction.atomic(alias, savepoint=False):
            send(alias, model, names, keyed)

    if name == SEQUENCES:  # its documentation wants the numbers in the transaction
        load = transaction.atomic(alias)(load)
    empty(alias, model)
    return taken(load)


def _keys(model: Any, alias: str, count: int) -> Sequence[Any]:
    """Return keys as the driver takes them; rows need no UUID of Python's."""
    if model is not MODELS[UUID7][0]:
        return new_keys(model, alias, count)
    made = [uuid_utils.uuid7() for _ in range(count)]
    if connections[alias].features.has_native_uuid_field:
        return [str(key) for key in made]
    return [key.hex for key in made]


def _copy(alias: str, model: Any, names: Sequence[str], rows: Any) -> None:
    into = f"{model._meta.db_table} ({', '.join(names)})"
    with (
        connections[alias].cursor() as cursor,
        cursor.copy(f"COPY {into} FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _execute_many(alias: str, model: Any, names: Sequence[str], rows: Any) -> None:
    into = f"{model._meta.db_table} ({', '.join(names)})"
    marks = ", ".join(["%s"] * len(names))
    with connections[alias].cursor() as cursor:
        cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def _load_file(alias: str, model: Any, names: Sequence[str], rows: Any) -> None:
    into = f"{model._meta.db_table} ({', '.join(names)})"
    with NamedTemporaryFile("w", suffix=".tsv") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
        file.flush()
        with connections[alias].cursor() as cursor:
            cursor.execute(f"LOAD DATA LOCAL INFILE %s INTO TABLE {into}", [file.name])
