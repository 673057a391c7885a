"""Raise Max with one UPDATE that tells what it wrote, where no more has to be done.

It finds no row where the way of counter.py has more to do: there is none yet, another
server raised it, fewer numbers are left, the server prefix needs a closer look.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from django.db import connections
from django.utils import timezone

from django_hilo.attempts import short_transaction
from django_hilo.conf import settings
from django_hilo.connections import schema_of
from django_hilo.identifiers import MAX_NUMBER, MAX_SERVER_PREFIX_LENGTH
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.servers import server_name

# Low, Max and the server prefix.
Written = tuple[int, int, str]

_IDLE = 0  # libpq's PQTRANS_IDLE, in psycopg 3 and 2

# Most of those in use; check_server_prefix() sees the others.
_PREFIX = rf"\A([A-Za-z0-9/_.-]{{0,{MAX_SERVER_PREFIX_LENGTH - 1}}}[A-Za-z/_.-])?\Z"


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
    document = HiLoDocument(
        id=HiLoDocument.key(collection, node_tag), size=size, ticket=ticket
    )
    parameters = {
        "id": document.id,
        "node_tag": node_tag,
        "size": size,
        "above": above,
        "highest": MAX_NUMBER - size,
        "reserved_at": connection.ops.adapt_datetimefield_value(timezone.now()),
        "ticket": ticket,
        "prefix": _PREFIX,
    }
    written = raise_as(db, parameters)
    if written is None:
        return None
    document.low, document.max, prefix = written
    return document, prefix


def _raise_in_one_message(db: str, parameters: dict[str, Any]) -> Written | None:
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
        try:
            cursor.execute(f"{wait}; {_update(db, 'GREATEST')}", parameters)
            if cursor.description is None:
                cursor.nextset()  # psycopg 3 keeps the answer to each statement
            written: Written | None = cursor.fetchone()
            return written
        except BaseException:
            if session.info.transaction_status != _IDLE:
                # A signal's handler raised it, with the answer still under way.
                connection.close()
            raise


def _raise_in_transaction(db: str, parameters: dict[str, Any]) -> Written | None:
    if not connections[db].features.can_return_columns_from_insert:
        return None
    # By itself the UPDATE would stay uncommitted, and nobody told, as long as another
    # cursor of the connection is at the rows of a RETURNING.
    with short_transaction(db) as connection, connection.cursor() as cursor:
        cursor.execute(_update(db, "MAX"), parameters)
        # All of them: SQLite's statement is not over before.
        rows: list[Written] = cursor.fetchall()
    return rows[0] if rows else None


_RAISES = {"postgresql": _raise_in_one_message, "sqlite": _raise_in_transaction}


def _update(db: str, greatest: str) -> str:
    connection = connections[db]
    quote = connection.ops.quote_name
    row, prefixes = (quote(m._meta.db_table) for m in (HiLoDocument, ServerPrefix))
    last = f"{greatest}({row}.max, {row}.floor, %(above)s)"
    own = f"SELECT prefix FROM {prefixes} WHERE node_tag = %(node_tag)s"  # noqa: S608 - quoted
    prefix = f"COALESCE(({own}), '')"
    # Connections of both kinds have it; the base class does not.
    is_plain = connection.operators["regex"] % "%(prefix)s"  # type: ignore[attr-defined]
    return (
        f"UPDATE {row} SET max = {last} + %(size)s, low = {last} + 1, "  # noqa: S608 - quoted
        f"size = %(size)s, reserved_at = %(reserved_at)s, ticket = %(ticket)s "
        f"WHERE id = %(id)s AND {last} <= %(highest)s AND {prefix} {is_plain} "
        # The name once: two would be two questions to the server.
        f"AND COALESCE(NULLIF({server_name(db).sql}, ''), {row}.raised_by) "
        f"= {row}.raised_by "
        f"RETURNING low, max, {prefix}"
    )
