"""The phases, as lists of work: what a dry run prints is what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django_hilo.moving.online.counterparts import indexes_of, references_of
from django_hilo.moving.online.shadows import Shadow, shadows_of
from django_hilo.moving.steps import Move

TRIGGER = "zz_hilo_move"  # the last of BEFORE triggers: they fire by their names


class Work(NamedTuple):
    """Statements that belong together, and the strongest lock they take.

    ``is_short``: one transaction under the lock timeout, tried again. Else each by
    itself, for as long as it takes; its lock lets others read and write.
    """

    what: str
    lock: str
    statements: tuple[str, ...]
    is_short: bool = True
    # In the same transaction, after the first statement.
    act: Callable[[], object] | None = None


class Batches(NamedTuple):
    """An UPDATE of a table, for a range of its blocks ("{low}" and "{high}")."""

    what: str
    lock: str
    table: str
    statement: str


def by_table(shadows: list[Shadow]) -> dict[str, list[Shadow]]:
    found: dict[str, list[Shadow]] = {}
    for shadow in shadows:
        found.setdefault(shadow.table, []).append(shadow)
    return found


def prepare(move: Move) -> list[Work | Batches]:
    """Add the columns, empty, and the triggers that keep them right from now on."""
    found: list[Work | Batches] = []
    name = move.sql.name
    for table, shadows in by_table(shadows_of(move)).items():
        columns = ", ".join(
            f"ADD COLUMN IF NOT EXISTS {name(each.new)} {each.type}" for each in shadows
        )
        sets = " ".join(
            f"NEW.{name(each.new)} := {each.value_in('NEW.')};" for each in shadows
        )
        function = function_of(table, move)
        body = move.sql.value(f"BEGIN {sets} RETURN NEW; END")
        comments = [
            f"COMMENT ON COLUMN {table}.{name(each.new)} "
            f"IS {move.sql.value(each.comment)}"
            for each in shadows
            if each.comment
        ]
        statements = (
            f"ALTER TABLE {table} {columns}",
            *comments,
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger "
            f"LANGUAGE plpgsql AS {body}",
            f"DROP TRIGGER IF EXISTS {TRIGGER} ON {table}",
            f"CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {function}()",
        )
        lock = "ACCESS EXCLUSIVE, for a change of the catalogue"
        found.append(Work(f"Add columns and a trigger to {table}", lock, statements))
    return found


def backfill(move: Move) -> list[Work | Batches]:
    """Fill the columns of the rows that no trigger has seen, some blocks at a time."""
    found: list[Work | Batches] = []
    name = move.sql.name
    for table, shadows in by_table(shadows_of(move)).items():
        sets = ", ".join(f"{name(each.new)} = {each.value_in('')}" for each in shadows)
        missing = " OR ".join(
            f"{name(each.new)} IS DISTINCT FROM {each.value_in('')}" for each in shadows
        )
        statement = (
            f"UPDATE {table} SET {sets} WHERE ctid >= '({{low}},0)' "
            f"AND ctid < '({{high}},0)' AND ({missing})"
        )
        lock = "ROW EXCLUSIVE, and the rows of one batch"
        found.append(Batches(f"Fill the columns of {table}", lock, table, statement))
    return found


def indexes(move: Move) -> list[Work | Batches]:
    """Build each index over the new columns, beside the old one."""
    found: list[Work | Batches] = []
    with move.connection.cursor() as cursor:
        for index in indexes_of(move, shadows_of(move)):
            cursor.execute(
                "SELECT i.indisvalid FROM pg_index i JOIN pg_class c "
                "ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass(%s) "
                "AND c.relname = %s",
                [index.table, index.new],
            )
            row = cursor.fetchone()
            if row and row[0]:
                continue
            # What was broken off leaves an index that is not valid.
            schema = index.name.rpartition(".")[0]
            new = f"{schema}.{move.sql.name(index.new)}"
            drop = (f"DROP INDEX CONCURRENTLY {new}",) if row else ()
            found.append(
                Work(
                    f"Build the counterpart of {index.name}",
                    "SHARE UPDATE EXCLUSIVE (reads and writes go on)",
                    (*drop, index.create),
                    is_short=False,
                )
            )
    return found


def constraints(move: Move) -> list[Work | Batches]:
    """Add the constraints without a look at the rows, then look at them."""
    found: list[Work | Batches] = []
    shadows, name = shadows_of(move), move.sql.name
    short = "ACCESS EXCLUSIVE, for a change of the catalogue"
    wanted = []
    for each in shadows:
        same = f"{name(each.new)} IS NOT DISTINCT FROM {each.value_in('')}"
        wanted.append((each.table, each.same, f"CHECK ({same})", short))
        if each.is_not_null:
            filled = f"CHECK ({name(each.new)} IS NOT NULL)"
            wanted.append((each.table, each.filled, filled, short))
    between = "SHARE ROW EXCLUSIVE on both tables, for a change of the catalogue"
    wanted += [
        (reference.table, reference.new, reference.definition, between)
        for reference in references_of(move, shadows)
    ]
    for table, constraint, definition, lock in wanted:
        state = is_validated(move, table, constraint)
        alter, quoted = f"ALTER TABLE {table}", name(constraint)
        if state is None:
            add = f"{alter} ADD CONSTRAINT {quoted} {definition} NOT VALID"
            found.append(Work(f"Add {constraint} to {table}", lock, (add,)))
        if not state:
            found.append(
                Work(
                    f"Look whether all rows of {table} keep to {constraint}",
                    "SHARE UPDATE EXCLUSIVE (reads and writes go on)",
                    (f"{alter} VALIDATE CONSTRAINT {quoted}",),
                    is_short=False,
                )
            )
    tables = ", ".join(by_table(shadows))
    analyze = Work(
        "Gather statistics", "SHARE UPDATE EXCLUSIVE", (f"ANALYZE {tables}",), False
    )
    return [*found, analyze]


def abandon(move: Move) -> list[Work | Batches]:
    """Drop what the phases before the swap have made."""
    found: list[Work | Batches] = []
    name = move.sql.name
    all_shadows = shadows_of(move, is_swap_ahead=False)
    for table, shadows in by_table(all_shadows).items():
        drops = ", ".join(
            f"DROP COLUMN IF EXISTS {name(each.new)} CASCADE" for each in shadows
        )
        statements = (
            f"DROP TRIGGER IF EXISTS {TRIGGER} ON {table}",
            f"DROP FUNCTION IF EXISTS {function_of(table, move)}()",
            f"ALTER TABLE {table} {drops}",
        )
        lock = "ACCESS EXCLUSIVE, for a change of the catalogue"
        found.append(Work(f"Drop columns and trigger of {table}", lock, statements))
    return found


def clean(move: Move) -> list[Work | Batches]:
    """Drop the old columns, after the swap."""
    found: list[Work | Batches] = []
    all_shadows = shadows_of(move, is_swap_ahead=False)
    for table, shadows in by_table(all_shadows).items():
        drops = ", ".join(
            f"DROP COLUMN IF EXISTS {move.sql.name(each.old)}" for each in shadows
        )
        lock = "ACCESS EXCLUSIVE, for a change of the catalogue"
        statement = f"ALTER TABLE {table} {drops}"
        found.append(Work(f"Drop the old columns of {table}", lock, (statement,)))
    return found


def function_of(table: str, move: Move) -> str:
    """Return the name of a table's function, which stands in the table's schema."""
    with move.connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(n.nspname), c.oid FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            [table],
        )
        schema, oid = cursor.fetchone()
    return f"{schema}.hilo_move_{oid}"


def is_validated(move: Move, table: str, constraint: str) -> bool | None:
    """Whether a constraint holds for all rows; None where it is not there."""
    with move.connection.cursor() as cursor:
        cursor.execute(
            "SELECT convalidated FROM pg_constraint WHERE conrelid = to_regclass(%s) "
            "AND conname = %s",
            [table, constraint],
        )
        row = cursor.fetchone()
    return None if row is None else bool(row[0])
