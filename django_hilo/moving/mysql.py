"""MariaDB and MySQL commit each statement: each can be repeated after a crash."""

from typing import Any

from django_hilo.moving import mapping, numbering
from django_hilo.moving.constraints import ForeignKey, mysql_keys
from django_hilo.moving.relations import Column
from django_hilo.moving.steps import Move, Part, Step, by_table, generic_steps, update
from django_hilo.moving.values import Mapped

_COPY = "metadata lock: writers wait during the copy, everyone at its end"
_ROWS = "its rows; reads continue"
_SHORT = "metadata lock, for a catalogue change"


def is_text(move: Move, column: Column | None = None) -> bool:
    """Whether a column, or the key's, is a text: after a crash, or on the way back."""
    place = column or move.key
    [(found,)] = move.rows(
        "SELECT data_type FROM information_schema.columns WHERE table_schema = "
        "database() AND table_name = %s AND column_name = %s",
        [place.table, place.column],
    )
    return str(found).lower() == "varchar"


def steps(moves: list[Move]) -> list[Step]:
    """Return the steps in either direction."""
    keys = [key for move in moves for key in mysql_keys(move)]
    found = [step for move in moves for step in _prepare(move)]
    found += [_drop(moves[0], key) for key in keys]
    for table, parts in by_table(moves).items():
        modify, convert = _modify(table, parts), _convert(table, parts)
        # Writers that were not stopped may have inserted up to the change of the type.
        raised = [
            numbering.raise_counter(move)
            for move, column in parts
            if column is move.key and not isinstance(move.values, Mapped)
        ]
        there = [modify, *raised, convert]
        found += there if moves[0].forwards else [convert, modify]
    for move in moves:
        found += generic_steps(move, _ROWS)
        if not move.forwards and numbering.has_default(move):
            found.append(_auto_increment(move))
    found += [
        _add(moves[0], table, [key for key in keys if key.shown == table])
        for table in dict.fromkeys(key.shown for key in keys)
    ]
    for move in moves:
        if not move.forwards and isinstance(move.values, Mapped):
            found.append(mapping.drop(move))
    return found


def _prepare(move: Move) -> list[Step]:
    if not isinstance(move.values, Mapped):
        return [numbering.raise_counter(move)] if move.forwards else []
    create, last = mapping.prepare(move)

    def act(editor: Any) -> None:
        # UUIDs again, before a crash on the way back: they are not ids.
        if move.forwards or is_text(move):
            last.run(editor)

    return [create, last._replace(act=act)]


def _modify(table: str, parts: list[Part]) -> Step:
    changes = []
    for move, column in parts:
        aim = move.aim(column)
        kind = str(aim.db_parameters(move.connection)["type"])
        if "char" in kind:  # UUIDs too, where there is no type for them
            # One for all: columns of two collations cannot refer to each other.
            kind += f" COLLATE {_collation(move)}"
        changes.append(
            f"MODIFY {move.sql.name(column.column)} {kind} "
            f"{'NULL' if aim.null else 'NOT NULL'}"
            + (f" COMMENT {move.sql.value(aim.db_comment)}" if aim.db_comment else "")
        )
    statement = f"ALTER TABLE {move.sql.name(table)} {', '.join(changes)}"
    what = "Change the type (a copy of the table)"
    return Step(what, table, _COPY, (statement,))


def _convert(table: str, parts: list[Part]) -> Step:
    statement = update(parts)

    def act(editor: Any) -> None:
        # Of another type they have been converted, before a crash on the way back.
        if is_text(*parts[0]):
            editor.execute(statement, None)

    return Step("Convert the values", table, _ROWS, (statement,), act)


def _collation(move: Move) -> str:
    given = move.key.new.db_parameters(move.connection).get("collation")
    if given:
        return str(given)
    [(found,)] = move.rows(
        "SELECT table_collation FROM information_schema.tables "
        "WHERE table_schema = database() AND table_name = %s",
        [move.key.table],
    )
    return str(found)


def collated_as_key(move: Move, text: str) -> str:
    """Return a text that can be compared with the key, whose index is then used."""
    [(charset, collation)] = move.rows(
        "SELECT character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = database() AND table_name = %s AND column_name = %s",
        [move.key.table, move.key.column],
    )
    if collation is None:  # a number, after a crash
        return text
    return f"CONVERT({text} USING {charset}) COLLATE {collation}"


def _drop(move: Move, key: ForeignKey) -> Step:
    name = move.sql.name(key.name)
    statement = f"ALTER TABLE {key.table} DROP FOREIGN KEY {name}"

    def act(editor: Any) -> None:
        if key.name in _constraints(move, key.shown):
            editor.execute(statement, None)

    return Step("Drop the foreign key", key.shown, _SHORT, (statement,), act)


def _constraints(move: Move, table: str) -> set[str]:
    found = move.rows(
        "SELECT constraint_name FROM information_schema.table_constraints "
        "WHERE table_schema = database() AND table_name = %s",
        [table],
    )
    return {name for (name,) in found}


def _add(move: Move, table: str, keys: list[ForeignKey]) -> Step:
    # All of a table's in one statement, which copies the table to check its rows.
    def act(editor: Any) -> None:
        known = _constraints(move, table)
        # One of a table that this migration made is added at its end.
        to_come = set(map(str, editor.deferred_sql))
        missing = [
            key for key in keys if key.name not in known and key.whole not in to_come
        ]
        if missing:
            editor.execute(_add_statement(missing), None)

    what = "Add the foreign keys again, which checks all rows"
    return Step(what, table, _COPY, (_add_statement(keys),), act)


def _add_statement(keys: list[ForeignKey]) -> str:
    return f"ALTER TABLE {keys[0].table} {', '.join(key.add for key in keys)}"


def _auto_increment(move: Move) -> Step:
    alter = f"ALTER TABLE {move.sql.name(move.key.table)} AUTO_INCREMENT ="

    def act(editor: Any) -> None:
        editor.execute(f"{alter} {numbering.next_default(move)}", None)

    what = "Continue AUTO_INCREMENT above all numbers"
    return Step(what, move.key.table, _SHORT, (f"{alter} <above all numbers>",), act)
