"""What stands over the old columns, and its counterpart over the new ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from django_hilo.exceptions import HiLoError
from django_hilo.moving.online.shadows import Shadow, rows_of
from django_hilo.moving.steps import Move


class Index(NamedTuple):
    """An index over old columns, and the statement for the one over the new ones."""

    oid: int
    name: str
    table: str
    # "" for one that no constraint owns, else PRIMARY KEY or UNIQUE.
    constraint: str
    deferrable: str
    create: str

    @property
    def new(self) -> str:
        return f"hilo_new_{self.oid}"


def indexes_of(move: Move, shadows: list[Shadow]) -> list[Index]:
    """Return the indexes over the columns; raises `HiLoError` for expressions."""
    found = []
    for table in dict.fromkeys(shadow.table for shadow in shadows):
        names = {each.attribute: each for each in shadows if each.table == table}
        parameters = [list(names), table, list(names), list(names)]
        for row in rows_of(move, _INDEXES, parameters):
            (
                oid,
                name,
                schema,
                method,
                unique,
                special,
                contype,
                deferrable,
                deferred,
            ) = row[:9]
            keys, attributes, options, classes, texts, predicate, same_nulls = row[9:]
            if special:
                raise HiLoError(
                    f"The index {name!r} of {table} has an expression or a condition "
                    f"with a key in it. Drop it, and make it again after the swap."
                )
            parts = []
            for place, attribute in enumerate(attributes):
                shadow = names.get(attribute)
                part = move.sql.name(shadow.new) if shadow else texts[place]
                if place < keys:
                    if classes[place] and (not shadow or shadow.keeps_type):
                        part += f" {classes[place]}"
                    part += " DESC" if options[place] & 1 else ""
                    part += _nulls(options[place])
                parts.append(part)
            include = f" INCLUDE ({', '.join(parts[keys:])})" if parts[keys:] else ""
            include += " NULLS NOT DISTINCT" if same_nulls else ""
            where = f" WHERE {predicate}" if predicate else ""
            create = (
                f"CREATE {'UNIQUE ' if unique else ''}INDEX CONCURRENTLY "
                f"{move.sql.name(f'hilo_new_{oid}')} ON {table} USING {method} "
                f"({', '.join(parts[:keys])}){include}{where}"
            )
            constraint = {"p": "PRIMARY KEY", "u": "UNIQUE"}.get(contype, "")
            suffix = " DEFERRABLE" if deferrable else ""
            suffix += " INITIALLY DEFERRED" if deferred else ""
            shown = f"{move.sql.name(schema)}.{move.sql.name(name)}"
            found.append(Index(oid, shown, table, constraint, suffix, create))
    return found


def _nulls(option: int) -> str:
    is_descending, nulls_first = option & 1, option & 2
    if is_descending and not nulls_first:
        return " NULLS LAST"
    return " NULLS FIRST" if nulls_first and not is_descending else ""


_INDEXES = """
    SELECT i.indexrelid, c.relname, n.nspname, am.amname, i.indisunique,
      (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND EXISTS (
        SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = i.indexrelid AND d.refobjid = i.indrelid
        AND d.refobjsubid = ANY (%s) AND NOT d.refobjsubid = ANY (i.indkey)),
      k.contype, k.condeferrable, k.condeferred, i.indnkeyatts,
      string_to_array(i.indkey::text, ' ')::int[],
      string_to_array(i.indoption::text, ' ')::int[],
      ARRAY(SELECT CASE WHEN o.opcdefault THEN '' ELSE quote_ident(o.opcname) END
        FROM unnest(string_to_array(i.indclass::text, ' ')::oid[])
        WITH ORDINALITY u(oid, at) JOIN pg_opclass o ON o.oid = u.oid ORDER BY u.at),
      ARRAY(SELECT pg_get_indexdef(i.indexrelid, at, false)
        FROM generate_series(1, i.indnatts) at),
      pg_get_expr(i.indpred, i.indrelid),
      -- a column since PostgreSQL 15
      (to_jsonb(i) ->> 'indnullsnotdistinct')::boolean
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_am am ON am.oid = c.relam
    LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
    WHERE i.indrelid = to_regclass(%s) AND (i.indkey::int2[] && %s::int2[]
      OR EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = i.indexrelid AND d.refobjid = i.indrelid
        AND d.refobjsubid = ANY (%s)))
      AND c.relname NOT LIKE 'hilo\\_new\\_%%'
    ORDER BY c.relname
"""


class Reference(NamedTuple):
    """A foreign key over old columns, and its counterpart over the new ones."""

    oid: int
    name: str
    table: str
    definition: str

    @property
    def new(self) -> str:
        return f"hilo_new_{self.oid}"


_RULES = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def references_of(move: Move, shadows: list[Shadow]) -> list[Reference]:
    """Return the foreign keys; raises `HiLoError` for those of several columns."""
    places = {
        (
            _oid(move, each.table),
            each.attribute,
        ): each
        for each in shadows
    }
    rows = rows_of(
        move,
        "SELECT oid, conname, conrelid, confrelid, conkey, confkey, confdeltype, "
        "confupdtype, condeferrable, condeferred FROM pg_constraint "
        "WHERE contype = 'f' AND confrelid = ANY (%s) "
        "AND conname NOT LIKE 'hilo\\_new%%' ORDER BY conrelid, conname",
        [list({oid for oid, _ in places})],
    )
    found = []
    for oid, name, source, target, keys, others, deleting, updating, *times in rows:
        ends = [places.get((target, other)) for other in others]
        if not any(ends):
            continue
        starts = [places.get((source, key)) for key in keys]
        if len(keys) > 1 or not all(starts) or starts[0] is None or ends[0] is None:
            raise HiLoError(
                f"The foreign key {name!r} has columns that are not moved. Drop it, "
                f"and make it again after the swap."
            )
        definition = (
            f"FOREIGN KEY ({move.sql.name(starts[0].new)}) "
            f"REFERENCES {ends[0].table} ({move.sql.name(ends[0].new)})"
        )
        for event, rule in (("DELETE", deleting), ("UPDATE", updating)):
            definition += f" ON {event} {_RULES[rule]}" if rule in _RULES else ""
        definition += " DEFERRABLE" if times[0] else ""
        definition += " INITIALLY DEFERRED" if times[1] else ""
        found.append(Reference(oid, name, starts[0].table, definition))
    return found


def _oid(move: Move, table: str) -> Any:
    return rows_of(move, "SELECT to_regclass(%s)::oid", [table])[0][0]
