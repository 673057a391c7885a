"""PostgreSQL rewrites each table once, in the transaction of the migration."""

from typing import Any

from django_hilo.exceptions import HiLoError
from django_hilo.moving import mapping, numbering
from django_hilo.moving.constraints import ForeignKey, postgres_keys
from django_hilo.moving.expressions import Sql
from django_hilo.moving.steps import Move, Part, Step, by_table, generic_steps
from django_hilo.moving.values import Mapped

_EXCLUSIVE = "ACCESS EXCLUSIVE, until the commit"
_ROWS = "ROW EXCLUSIVE (reads and other writes continue)"


def steps(moves: list[Move]) -> list[Step]:
    """Return the steps in either direction."""
    sql, tables = moves[0].sql, by_table(moves)
    keys = [key for move in moves for key in postgres_keys(move)]
    lock = f"LOCK TABLE {', '.join(map(sql.name, tables))} IN ACCESS EXCLUSIVE MODE"
    what = "Lock the tables, so that no write is missed"
    found = [
        # Triggers of statements before this one would not let tables be altered.
        Step("Check deferred constraints", "", "", ("SET CONSTRAINTS ALL IMMEDIATE",)),
        Step(what, ", ".join(tables), _EXCLUSIVE, (lock,)),
    ]
    for move in moves:
        if isinstance(move.values, Mapped):
            found += [*mapping.prepare(move), _function(move, move.values)]
        elif move.forwards:
            found.append(numbering.raise_counter(move))
    found += [_drop(sql, key) for key in keys]
    numbered = [move for move in moves if numbering.has_default(move)]
    found += [_drop_default(move) for move in numbered if move.forwards]
    found += [_rewrite(table, parts) for table, parts in tables.items()]
    found += [_add_identity(move) for move in numbered if not move.forwards]
    what = "Add the foreign key again, which checks all rows"
    found += [Step(what, key.shown, _EXCLUSIVE, (key.whole,)) for key in keys]
    for move in moves:
        found += generic_steps(move, _ROWS)
        if isinstance(move.values, Mapped):
            drop = f"DROP FUNCTION {_function_of(move.values)}"
            found.append(Step("Drop the function", "", "", (drop,)))
            if not move.forwards:
                found.append(mapping.drop(move))
    return found


def check_views(move: Move) -> None:
    """Raise `HiLoError` for views that use the columns, or other such views."""
    found: dict[str, str] = {}
    for column in move.columns:
        rows = move.rows(
            """
            WITH RECURSIVE uses AS (
              SELECT d.refobjid AS used, d.refobjsubid AS part, r.ev_class AS by
              FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
              WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid <> r.ev_class
            ), found AS (
              SELECT uses.by FROM uses JOIN pg_attribute a
                ON a.attrelid = uses.used AND a.attnum = uses.part
              WHERE uses.used = to_regclass(%s) AND a.attname = %s
              UNION SELECT uses.by FROM uses JOIN found ON found.by = uses.used
            )
            SELECT DISTINCT c.oid::regclass::text,
              CASE c.relkind WHEN 'm' THEN 'materialized view ' ELSE 'view ' END
            FROM found JOIN pg_class c ON c.oid = found.by
            WHERE c.relkind IN ('v', 'm')
            """,
            [move.sql.name(column.table), column.column],
        )
        found.update((name, kind) for name, kind in rows)
    if found:
        names = ", ".join(f"{found[name]}{name}" for name in sorted(found))
        raise HiLoError(
            f"PostgreSQL cannot change a column that a view uses, and these use "
            f"{move.key} or a reference to it: {names}. Drop them in a migration "
            f"before this one, and create them again in one after it."
        )


def _function_of(values: Mapped) -> str:
    return f"pg_temp.{values.sql.name(values.table)}"


def _function(move: Move, values: Mapped) -> Step:
    # The expression of a rewrite may hold no subquery, but a function that has one.
    body = move.sql.value(f"SELECT {move.converted('value')}")
    statement = (
        f"CREATE FUNCTION {_function_of(values)}(value text) RETURNS text "
        f"LANGUAGE sql STABLE AS {body}"
    )
    return Step("Create a function that looks values up", "", "", (statement,))


def _drop(sql: Sql, key: ForeignKey) -> Step:
    statement = f"ALTER TABLE {key.table} DROP CONSTRAINT {sql.name(key.name)}"
    return Step("Drop the foreign key", key.shown, _EXCLUSIVE, (statement,))


def _rewrite(table: str, parts: list[Part]) -> Step:
    changes = []
    for move, column in parts:
        name, aim = move.sql.name(column.column), move.aim(column)
        parameters = aim.db_parameters(move.connection)
        type, collation = parameters["type"], parameters.get("collation")
        text = move.sql.text(name)
        if isinstance(move.values, Mapped):
            value = f"{_function_of(move.values)}({text})"
        else:
            value = move.converted(text)
        changes.append(
            f"ALTER COLUMN {name} TYPE {type}"
            + (f" COLLATE {move.sql.name(collation)}" if collation else "")
            + f" USING CAST({value} AS {type})"
        )
    statement = f"ALTER TABLE {move.sql.name(table)} {', '.join(changes)}"
    what = "Change type and values (one rewrite of the table and its indexes)"
    return Step(what, table, _EXCLUSIVE, (statement,))


def _drop_default(move: Move) -> Step:
    sql, key = move.sql, move.key
    table, column = sql.name(key.table), sql.name(key.column)
    alter = f"ALTER TABLE {table} ALTER COLUMN {column} DROP"
    [(is_identity, sequence)] = move.rows(
        "SELECT attidentity <> '', pg_get_serial_sequence(%s, %s) "
        "FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s",
        [table, key.column, table, key.column],
    )
    statements = [f"{alter} IDENTITY" if is_identity else f"{alter} DEFAULT"]
    if sequence and not is_identity:
        statements.append(f"DROP SEQUENCE {sequence}")
    what = "Remove the default of the key"
    return Step(what, key.table, _EXCLUSIVE, tuple(statements))


def _add_identity(move: Move) -> Step:
    sql, key = move.sql, move.key
    table, column = sql.name(key.table), sql.name(key.column)
    alter = f"ALTER TABLE {table} ALTER COLUMN {column}"
    add = f"{alter} ADD {key.old.db_type_suffix(move.connection)}"

    def act(editor: Any) -> None:
        editor.execute(add, None)
        editor.execute(f"{alter} RESTART {numbering.next_default(move)}", None)

    what = "Continue the identity above all numbers"
    statements = (add, f"{alter} RESTART <above all numbers>")
    return Step(what, key.table, _EXCLUSIVE, statements, act)
