"""The swap: old and new columns change names, and what stands over them goes along."""

from __future__ import annotations

from django.db.migrations.recorder import MigrationRecorder

from django_hilo.exceptions import HiLoError
from django_hilo.moving import counters
from django_hilo.moving.online.counterparts import (
    Reference,
    indexes_of,
    references_of,
)
from django_hilo.moving.online.phases import (
    TRIGGER,
    Work,
    by_table,
    function_of,
    is_validated,
)
from django_hilo.moving.online.shadows import Shadow, shadows_of
from django_hilo.moving.postgresql import drop_default
from django_hilo.moving.steps import Move


def swap(move: Move, migration: tuple[str, str]) -> list[Work]:
    """Let the columns change places, in one transaction, and record the migration."""
    shadows, name = shadows_of(move), move.sql.name
    built, referring = indexes_of(move, shadows), references_of(move, shadows)
    statements = [f"LOCK TABLE {', '.join(by_table(shadows))} IN ACCESS EXCLUSIVE MODE"]
    for table in by_table(shadows):
        statements.append(f"DROP TRIGGER {TRIGGER} ON {table}")
        statements.append(f"DROP FUNCTION {function_of(table, move)}()")
    for reference in referring:
        drop = f"ALTER TABLE {reference.table} DROP CONSTRAINT {name(reference.name)}"
        statements.append(drop)
    statements += _drop_default(move)
    for index in built:
        own = index.name.rpartition(".")[2]
        if index.constraint:
            statements.append(f"ALTER TABLE {index.table} DROP CONSTRAINT {own}")
        else:
            statements.append(f"DROP INDEX {index.name}")
    for each in shadows:
        alter, column = f"ALTER TABLE {each.table}", name(each.column)
        if each.is_not_null:
            statements.append(f"{alter} ALTER COLUMN {name(each.new)} SET NOT NULL")
            statements.append(f"{alter} DROP CONSTRAINT {name(each.filled)}")
            statements.append(f"{alter} ALTER COLUMN {column} DROP NOT NULL")
        statements.append(f"{alter} DROP CONSTRAINT {name(each.same)}")
        statements.append(f"{alter} RENAME COLUMN {column} TO {name(each.old)}")
        statements.append(f"{alter} RENAME COLUMN {name(each.new)} TO {column}")
    for index in built:
        schema, _, own = index.name.rpartition(".")
        if index.constraint:
            statements.append(
                f"ALTER TABLE {index.table} ADD CONSTRAINT {own} {index.constraint} "
                f"USING INDEX {name(index.new)}{index.deferrable}"
            )
        else:
            new = f"{schema}.{name(index.new)}"
            statements.append(f"ALTER INDEX {new} RENAME TO {own}")
    for reference in referring:
        statements.append(
            f"ALTER TABLE {reference.table} RENAME CONSTRAINT "
            f"{name(reference.new)} TO {name(reference.name)}"
        )
    counter = counters.raise_counter(move)

    def act() -> None:
        _check_ready(move, shadows, [index.new for index in built], referring)
        counter.run(None)
        MigrationRecorder(move.connection).record_applied(*migration)

    what = f"Swap; {counter.what.lower()}; record {'.'.join(migration)} as applied"
    lock = "ACCESS EXCLUSIVE on all of the tables, for changes of the catalogue"
    return [Work(what, lock, tuple(statements), act=act)]


def _drop_default(move: Move) -> list[str]:
    return list(drop_default(move).sql) if counters.has_default(move) else []


def _check_ready(
    move: Move, shadows: list[Shadow], built: list[str], referring: list[Reference]
) -> None:
    """Raise `HiLoError` where a phase is missing; called under the lock."""
    wanted = [(each.table, each.same) for each in shadows]
    wanted += [(each.table, each.filled) for each in shadows if each.is_not_null]
    wanted += [(each.table, each.new) for each in referring]
    missing = [name for table, name in wanted if not is_validated(move, table, name)]
    with move.connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid "
            "WHERE i.indisvalid AND c.relname = ANY (%s)",
            [built],
        )
        valid = {row[0] for row in cursor.fetchall()}
    missing += sorted(set(built) - valid)
    if missing:
        raise HiLoError(
            f"Not ready for the swap: {', '.join(missing)} is missing, or not valid. "
            f"Run the phases prepare, backfill, indexes and constraints first."
        )
