"""SQLite copies each table to change it; the whole move is one transaction."""

from typing import Any

from django_hilo._database.dialects import dialect_of
from django_hilo.moving import mapping, numbering
from django_hilo.moving.constraints import check_sqlite_keys
from django_hilo.moving.steps import Move, Step, by_table, generic_steps, update
from django_hilo.moving.values import Mapped

_LOCK = "the file: all other writers wait until the commit"


def steps(moves: list[Move]) -> list[Step]:
    """Return the steps in either direction."""
    found: list[Step] = []
    for move in moves:
        check_sqlite_keys(move)
        if isinstance(move.values, Mapped):
            found += mapping.prepare(move)
        elif move.forwards:
            found.append(numbering.raise_counter(move))
    for table, parts in by_table(moves).items():
        convert = Step("Convert the values", table, _LOCK, (update(parts),))
        # The table as it is in the end: after the last move, or before the first.
        move, column = parts[-1 if moves[0].forwards else 0]
        remake = _remake(move, table, move.aim(column).model)
        found += [remake, convert] if move.forwards else [convert, remake]
    for move in moves:
        found += generic_steps(move, _LOCK)
        if not move.forwards and isinstance(move.values, Mapped):
            found.append(mapping.drop(move))
        if not move.forwards and numbering.has_default(move):
            found.append(_go_on(move))
    return [*found, _check(moves[0])]


def _go_on(move: Move) -> Step:
    def go_on(editor: Any) -> None:
        connection, last = move.connection, numbering.next_default(move) - 1
        dialect_of(connection).raise_default(connection, move.key.table, last)

    what = "Continue AUTOINCREMENT above all numbers"
    return Step(what, move.key.table, _LOCK, ("UPDATE sqlite_sequence",), go_on)


def _remake(move: Move, table: str, model: Any) -> Step:
    def act(editor: Any) -> None:
        # As Django does for the tables that refer to a key whose type it changes.
        editor._remake_table(model)

    new = move.sql.name(f"new__{table.strip(chr(34))}")
    old = move.sql.name(table)
    statements = (
        f"CREATE TABLE {new} (...)",
        f"INSERT INTO {new} (...) SELECT ... FROM {old}",
        f"DROP TABLE {old}",
        f"ALTER TABLE {new} RENAME TO {old}",
    )
    return Step("Copy the table with the new type", table, _LOCK, statements, act)


def _check(move: Move) -> Step:
    what, sql = "Check all foreign keys", ("PRAGMA foreign_key_check",)
    return Step(what, "", _LOCK, sql, lambda _: move.connection.check_constraints())
