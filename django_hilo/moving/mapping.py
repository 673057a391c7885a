"""The table that keeps each UUID beside its id, from the way there to the way back."""

from typing import Any
from uuid import uuid4

from django.db.backends.utils import strip_quotes, truncate_name

from django_hilo.counters.ranges import Wanted
from django_hilo.exceptions import HiLoError
from django_hilo.moving.numbering import highest_reserved
from django_hilo.moving.steps import Move, Step
from django_hilo.moving.values import Mapped

_CHUNK = 1000


def table_of(key: Any, connection: Any) -> str:
    """Return the name of the table for a key."""
    table = strip_quotes(key.model._meta.db_table).replace('"', "")
    name: str = truncate_name(f"hilo_moved_{table}", connection.ops.max_name_length())
    return name


def prepare(move: Move) -> list[Step]:
    """Return the steps before the columns change: an id for each UUID, or a UUID."""
    step = _fill(move) if move.forwards else _complete(move)
    return [_create(move), step]


def _create(move: Move) -> Step:
    """Return the step that makes the table if it does not exist."""
    length = move.key.new.max_length
    # One by bytes compares with columns of any other.
    is_mysql = move.connection.vendor == "mysql"
    collation = " COLLATE utf8mb4_bin" if is_mysql else ""
    statement = (
        f"CREATE TABLE IF NOT EXISTS {move.sql.name(_table(move))} ("
        f"old_id varchar(36){collation} NOT NULL PRIMARY KEY, "
        f"old_text varchar(36){collation} NOT NULL UNIQUE, "
        f"new_id varchar({length}){collation} NOT NULL UNIQUE)"
    )
    return Step("Create the table of UUIDs and ids", _table(move), "", (statement,))


def _fill(move: Move) -> Step:
    """Return the step that numbers the rows it does not have yet, and reserves."""

    def act(editor: Any) -> None:
        [(count,)] = move.rows(f"SELECT COUNT(*) FROM {_missing(move)}")
        if count:
            counter = move.counter
            wanted = Wanted(count, count, minimum=highest_reserved(counter))
            (reserved,) = counter.source.reserve(counter.using, wanted)
            editor.execute(_insert(move, reserved.range.low - 1), None)

    what = "Give each row a number, in order, from a range reserved for them"
    return Step(what, move.key.table, "", (_insert(move, None),), act)


def _complete(move: Move) -> Step:
    """Return the step that gives UUIDs to rows that were made since."""
    sql, table = move.sql, _table(move)
    rows = f"SELECT {sql.name(move.key.column)} FROM {_missing(move)}"
    insert = f"INSERT INTO {sql.name(table)} (old_id, old_text, new_id) VALUES"

    def act(editor: Any) -> None:
        while ids := move.rows(f"{rows} LIMIT {_CHUNK}"):
            places = ", ".join(["(%s, %s, %s)"] * len(ids))
            values = [part for (id,) in ids for part in _new_uuid(move, id)]
            move.rows(f"{insert} {places}", values)

    what = "Give new UUIDs to the rows that were created since"
    return Step(what, table, "", (f"{insert} (a new uuid4 for each of: {rows})",), act)


def drop(move: Move) -> Step:
    """Return the step that drops the table, on the way back."""
    table = _table(move)
    drop = f"DROP TABLE {move.sql.name(table)}"
    return Step("Drop the table of UUIDs and ids", table, "", (drop,))


def _table(move: Move) -> str:
    assert isinstance(move.values, Mapped)
    return move.values.table


def _new_uuid(move: Move, id: str) -> tuple[str, str, str]:
    new = uuid4()
    return str(new) if _is_native(move) else new.hex, str(new), id


def _is_native(move: Move) -> bool:
    # Not what the database can: MariaDB's columns of before 10.7 stay as they were.
    return bool(move.key.old.db_type(move.connection) == "uuid")


def _missing(move: Move) -> str:
    sql = move.sql
    mapping, table = sql.name(_table(move)), sql.name(move.key.table)
    key = sql.text(f"{table}.{sql.name(move.key.column)}")
    known = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {mapping} moved WHERE moved.{column} = {key})"
        for column in ("old_id", "new_id")
    )
    return f"{table} WHERE {known}"


def _insert(move: Move, before: int | None) -> str:
    sql = move.sql
    options = move.key.old.model._meta
    fields = {field.name: field for field in options.local_concrete_fields}
    for name in move.order_by:
        if name.lstrip("-") not in fields:
            raise HiLoError(
                f"order_by contains {name!r}, which is not a column of "
                f"{options.label}'s own table. Choose from: {', '.join(fields)}."
            )
    orders = [
        f"{sql.name(fields[name.lstrip('-')].column)}"
        f"{' DESC' if name.startswith('-') else ''}"
        for name in move.order_by
    ]
    key = sql.name(move.key.column)
    number = f"ROW_NUMBER() OVER (ORDER BY {', '.join([*orders, key])})"
    number = f"{'<Max>' if before is None else before} + {number}"
    text = sql.text(key)
    return (
        f"INSERT INTO {sql.name(_table(move))} (old_id, old_text, new_id) "
        f"SELECT {text}, {_with_dashes(move, text)}, "
        f"{sql.compose(sql.text(number), move.id_format)} FROM {_missing(move)}"
    )


def _with_dashes(move: Move, text: str) -> str:
    """Return a UUID as Python writes it, which is what generic columns hold."""
    if _is_native(move):
        return text
    parts = [
        f"SUBSTR({text}, {start}, {length})"
        for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    ]
    if move.connection.vendor == "mysql":
        return f"CONCAT_WS('-', {', '.join(parts)})"
    return " || '-' || ".join(parts)
