"""The counter of the ids, and the numbering of the column that they replace."""

from typing import Any

from django.db.models.fields import AutoFieldMixin

from django_hilo._allocation.counter import Counter
from django_hilo._database.dialects import dialect_of
from django_hilo._database.dialects.base import rows_of
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.own import OwnSource
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Column
from django_hilo.moving.steps import Move, Step


def highest_number(connection: Any, key: Column) -> int:
    """Return the highest integer key, given to a row or by the column's default."""
    sql = Sql(connection)
    if connection.vendor == "mysql":
        # After a crash some keys may be ids.
        text = sql.text(sql.name(key.column))
        found = rows_of(
            connection,
            f"SELECT MAX(CAST({text} AS UNSIGNED)) FROM {sql.name(key.table)} "
            f"WHERE {sql.is_digits(text)}",
        )
        default = dialect_of(connection).last_default(connection, key.table)
        return max(int(number or 0) for number in [found[0][0], *default])
    highest = KeyColumn(key.table, key.column).highest(connection.alias)
    if connection.vendor == "postgresql":
        [(last,)] = rows_of(
            connection,
            "SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, %s)::regclass)",
            [sql.name(key.table), key.column],
        )
        highest = max(highest, last or 0)
    return highest


def highest_reserved(counter: Counter) -> int:
    """Return the highest number that any counter of the collection has reserved.

    Each node tag has a counter, and there may be a gapless one.
    """
    source, using = counter.source, counter.using
    if not isinstance(source, OwnSource):
        return source.read_max(using)
    # Not above: a project may have removed the app, and kept its migrations.
    from django_hilo.models import GaplessCounter, HiLoDocument

    name = counter.collection.lower()
    documents = HiLoDocument.objects.using(using).filter(collection=name)
    gapless = GaplessCounter.objects.using(using).filter(collection=name)
    found = [each.next_low - 1 for each in documents]
    return max([0, *found, *(each.last for each in gapless)])


def raise_counter(move: Move) -> Step:
    """Return the step that raises the counter over all keys."""
    counter = move.counter
    known = highest_number(move.connection, move.key)

    def act(editor: Any) -> None:
        highest = highest_number(move.connection, move.key)
        if highest:
            counter.source.raise_floor(counter.using, highest)

    what = f"Raise the counter of {counter.collection!r} on {counter.using!r}"
    return Step(what, "", "", (f"{counter.source.name}: at least {known}",), act)


def has_default(move: Move) -> bool:
    """Whether the database numbered the rows."""
    return isinstance(move.key.old, AutoFieldMixin)


def next_default(move: Move) -> int:
    """Return the number that integer keys go on with: over all ids, and over Max."""
    key, counter = move.key, move.counter
    rows = KeyColumn(key.table, key.column).highest(move.connection.alias)
    given = 0 if move.is_new else highest_reserved(counter)
    _, most = move.connection.ops.integer_field_range(key.old.get_internal_type())
    return max(rows, given if most is None or given < most else 0) + 1
