"""The foreign keys that refer to the key, by the catalogue of the database."""

from typing import Any, NamedTuple

from django_hilo.exceptions import HiLoError
from django_hilo.moving.relations import Column
from django_hilo.moving.steps import Move


class ForeignKey(NamedTuple):
    """A constraint: ``table`` is quoted, ``add`` makes it again in an ALTER TABLE."""

    name: str
    table: str
    shown: str
    add: str

    @property
    def whole(self) -> str:
        """The statement that adds this one alone."""
        return f"ALTER TABLE {self.table} {self.add}"


def postgres_keys(move: Move) -> list[ForeignKey]:
    """Return the constraints; raises `HiLoError` for those that no model has."""
    found = {}
    ours = {
        (_oid(move, column.table), column.column): column for column in move.columns
    }
    for column in filter(lambda each: each.is_referred_to, move.columns):
        rows = move.rows(
            """
            SELECT c.oid, c.conname, c.conrelid, c.conrelid::regclass::text,
              pg_get_constraintdef(c.oid), a.attname
            FROM pg_constraint c
            JOIN pg_attribute k
              ON k.attrelid = c.confrelid AND k.attname = %s
            JOIN pg_attribute a ON a.attrelid = c.conrelid
              AND a.attnum = c.conkey[array_position(c.confkey, k.attnum)]
            WHERE c.contype = 'f' AND c.confrelid = %s AND c.conparentid = 0
            ORDER BY 4, 2
            """,
            [column.column, _oid(move, column.table)],
        )
        for oid, name, relation, table, definition, attribute in rows:
            _check_known(ours, (relation, attribute), name, table, column)
            add = f"ADD CONSTRAINT {move.sql.name(name)} {definition}"
            found[oid] = ForeignKey(name, table, table, add)
    return list(found.values())


def _oid(move: Move, table: str) -> Any:
    return move.rows("SELECT to_regclass(%s)::oid", [move.sql.name(table)])[0][0]


def mysql_keys(move: Move) -> list[ForeignKey]:
    """Return the constraints, and those that a crash has left out."""
    sql = move.sql
    ours = {(column.table, column.column): column for column in move.columns}
    found: dict[tuple[str, str], ForeignKey] = {}
    for column in filter(lambda each: each.is_referred_to, move.columns):
        rows = move.rows(
            """
            SELECT u.constraint_name, u.table_name, u.column_name,
              r.delete_rule, r.update_rule
            FROM information_schema.key_column_usage u
            JOIN information_schema.referential_constraints r
              ON r.constraint_schema = u.constraint_schema
              AND r.constraint_name = u.constraint_name
              AND r.table_name = u.table_name
            WHERE u.referenced_table_schema = database()
              AND u.referenced_table_name = %s AND u.referenced_column_name = %s
            ORDER BY u.table_name, u.constraint_name
            """,
            [column.table, column.column],
        )
        for name, table, its_column, deleting, updating in rows:
            _check_known(ours, (table, its_column), name, table, column)
            add = (
                f"ADD CONSTRAINT {sql.name(name)} "
                f"FOREIGN KEY ({sql.name(its_column)}) "
                f"REFERENCES {sql.name(column.table)} ({sql.name(column.column)})"
                f"{_rule('DELETE', deleting)}{_rule('UPDATE', updating)}"
            )
            found[table, its_column] = ForeignKey(name, sql.name(table), table, add)
    for place, column in ours.items():
        if column is not move.key and column.new.db_constraint and place not in found:
            found[place] = _by_django(move, column)
    return list(found.values())


def check_sqlite_keys(move: Move) -> None:
    """Raise `HiLoError` if a table that no model has refers to the key."""
    ours: dict[tuple[Any, str], Column] = {
        (column.table.strip('"'), column.column): column for column in move.columns
    }
    introspection = move.connection.introspection
    with move.connection.cursor() as cursor:
        for table in introspection.table_names(cursor):
            relations = introspection.get_relations(cursor, table)
            for column, relation in relations.items():
                referred = ours.get((relation[1], relation[0]))
                if referred is not None:
                    _check_known(ours, (table, column), column, table, referred)


def _by_django(move: Move, column: Column) -> ForeignKey:
    field, editor = move.aim(column), move.connection.schema_editor()
    suffix = "_fk_%(to_table)s_%(to_column)s"
    statement = editor._create_fk_sql(field.model, field, suffix)
    name, table = str(statement.parts["name"]).strip("`"), move.sql.name(column.table)
    add = str(statement).removeprefix(f"ALTER TABLE {table} ")
    return ForeignKey(name, table, column.table, add)


def _rule(event: str, rule: str) -> str:
    return "" if rule in ("RESTRICT", "NO ACTION") else f" ON {event} {rule}"


def _check_known(
    ours: dict[tuple[Any, str], Column],
    place: tuple[Any, str],
    name: str,
    table: str,
    column: Column,
) -> None:
    if place not in ours:
        raise HiLoError(
            f"The foreign key {name!r} of {table}.{place[1]} refers to {column}, but "
            f"belongs to no model in the state of this migration. Add the migration "
            f"that created it to the dependencies; if there is none, drop the key and "
            f"add it again after the move."
        )
