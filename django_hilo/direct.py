"""Raise Max with one UPDATE that tells what it wrote, where no more has to be done.

It finds no row where the way of counter.py has more to do: there is none yet, another
server raised it, fewer numbers are left, the server prefix is another than is known.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from django_hilo.attempts import short_transaction
from django_hilo.conf import settings
from django_hilo.connections import schema_of
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.servers import server_name_sql

_BOUND = "hilo_bound_wait"
# What each node's prefix was the last time, by alias and tag.
_prefixes: dict[tuple[str, str], str] = {}

_IDLE = 0  # libpq's PQTRANS_IDLE, in psycopg 3 and 2


def raise_max(
    db: str, collection: str, node_tag: str, size: int, above: int, ticket: str
) -> tuple[HiLoDocument, str] | None:
    """Reserve ``size`` numbers over Max, floor and ``above``, and commit.

    Returns the row, with what was written of it, and the server prefix of its node.
    None: nothing was written, and the range is to be reserved under the row's lock.
    """
    connection = connections[db]
    raise_as = _RAISES.get(connection.vendor)
    if (
        raise_as is None
        or above + size > MAX_NUMBER
        or connection.in_atomic_block
        or not connection.get_autocommit()
    ):
        return None
    prefix = _prefixes.get((connection.alias, node_tag), "")
    id = HiLoDocument.key(collection, node_tag)
    parameters = {
        "id": id,
        "node_tag": node_tag,
        "size": size,
        "above": above,
        "highest": MAX_NUMBER - size,
        "reserved_at": connection.ops.adapt_datetimefield_value(timezone.now()),
        "ticket": ticket,
        "prefix": prefix,
    }
    high = raise_as(db, parameters)
    if high is None:
        return None
    low = high - size + 1
    document = HiLoDocument(id=id, low=low, max=high, size=size, ticket=ticket)
    return document, prefix


def note_prefix(using: str, node_tag: str, prefix: str) -> None:
    """Note the server prefix of a node, for the next `raise_max` to compare."""
    _prefixes[using, node_tag] = prefix


def _raise_on_postgresql(db: str, parameters: dict[str, Any]) -> int | None:
    connection = connections[db]
    if (
        settings.SYNCHRONOUS_COMMIT is not None
        or schema_of(connection) is not None
        or connection.settings_dict["OPTIONS"].get("server_side_binding") is True
    ):
        return None
    with connection.cursor() as cursor:
        session = connection.connection
        if session.info.transaction_status != _IDLE:
            return None  # in a transaction that Django does not know of
        # What one message holds is one transaction. The UPDATE waits for a lock on the
        # table before it could set anything.
        wait = f"SET LOCAL lock_timeout = {ceil(settings.LOCK_TIMEOUT * 1000)}"
        update = _update(_POSTGRESQL, server_name_sql(db))
        try:
            cursor.execute(f'{wait}; {update} RETURNING "max"', parameters)
            if cursor.description is None:
                cursor.nextset()  # psycopg 3 keeps the answer to each statement
            written = cursor.fetchone()
        except BaseException:
            if session.info.transaction_status != _IDLE:
                # A signal's handler raised it, with the answer still under way.
                connection.close()
            raise
    return written[0] if written else None


def _raise_on_mariadb(db: str, parameters: dict[str, Any]) -> int | None:
    connection = connections[db]
    # Connections of this kind have it; the base class does not.
    if not connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        return None  # not tried on MySQL
    with connection.cursor() as cursor:
        try:
            _bound_wait(connection, cursor)
            cursor.execute(_update(_MARIADB, server_name_sql(db)), parameters)
            if cursor.rowcount and not cursor.lastrowid:
                return _hidden_max(cursor, parameters)
        except Error:
            raise
        except BaseException:
            # A signal's handler raised it: PyMySQL would take the answer for the next.
            connection.close()
            raise
        return cursor.lastrowid or None  # 0 where no row was found


def _hidden_max(cursor: Any, parameters: dict[str, Any]) -> int | None:
    """Read Max, which a trigger on the table keeps from us, while it is still ours."""
    row = HiLoDocument._meta.db_table
    cursor.execute(
        f"SELECT `max` FROM {row} WHERE id = %(id)s AND ticket = %(ticket)s",  # noqa: S608 - our own name
        parameters,
    )
    written = cursor.fetchone()
    return written[0] if written else None


def _bound_wait(connection: BaseDatabaseWrapper, cursor: Any) -> None:
    """Bound the wait for locks, once a session: it is our own."""
    wanted = connection.connection, ceil(settings.LOCK_TIMEOUT)
    if vars(connection).get(_BOUND) != wanted:
        cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {wanted[1]}")
        vars(connection)[_BOUND] = wanted


def _raise_on_sqlite(db: str, parameters: dict[str, Any]) -> int | None:
    if not connections[db].features.can_return_columns_from_insert:
        return None
    update = _update(_SQLITE, server_name_sql(db))
    # By itself the UPDATE would stay uncommitted, and nobody told, as long as another
    # cursor of the connection is at the rows of a RETURNING.
    with short_transaction(db) as connection, connection.cursor() as cursor:
        cursor.execute(f'{update} RETURNING "max"', parameters)
        # All of them: SQLite's statement is not over before.
        rows = cursor.fetchall()
    return rows[0][0] if rows else None


class _Dialect(NamedTuple):
    quote: str
    greatest: str
    # How an expression gets out.
    told: str
    # What keeps a comparison from ignoring case.
    exactly: str


_POSTGRESQL = _Dialect('"', "GREATEST", "{}", "")
_MARIADB = _Dialect("`", "GREATEST", "LAST_INSERT_ID({})", "BINARY")
_SQLITE = _Dialect('"', "MAX", "{}", "")

_RAISES = {
    "postgresql": _raise_on_postgresql,
    "mysql": _raise_on_mariadb,
    "sqlite": _raise_on_sqlite,
}


@lru_cache
def _update(dialect: _Dialect, server: str) -> str:
    row, prefixes = HiLoDocument._meta.db_table, ServerPrefix._meta.db_table
    last = f'{dialect.greatest}("max", floor, %(above)s)'
    high = dialect.told.format(f"{last} + %(size)s")
    prefix = f"SELECT prefix FROM {prefixes} WHERE node_tag = %(node_tag)s"  # noqa: S608 - our own names
    statement = (
        # MariaDB sets one after another: `last` must not see the new Max.
        f'UPDATE {row} SET low = {last} + 1, "max" = {high}, size = %(size)s, '  # noqa: S608 - our own names
        f"reserved_at = %(reserved_at)s, ticket = %(ticket)s "
        f"WHERE id = %(id)s AND {last} <= %(highest)s "
        f"AND COALESCE(({prefix}), '') = {dialect.exactly} %(prefix)s "
        # The name once: two would be two questions to the server.
        f"AND COALESCE(NULLIF({server}, ''), raised_by) = raised_by"
    )
    return statement.replace('"', dialect.quote)
