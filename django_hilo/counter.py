"""Change a counter's row under its lock, in a short transaction tried again as a whole.

Nothing else writes the table, so every change burns the ticket of the newest range.
"""

from __future__ import annotations

import logging
import random
import secrets
import time
from collections.abc import Callable, Iterable
from itertools import chain
from math import ceil
from typing import Any

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Subquery, Value
from django.db.models.functions import Coalesce

from django_hilo.conf import settings
from django_hilo.connections import (
    counter_connection,
    is_bound,
    schema_of,
)
from django_hilo.exceptions import ConcurrencyError, HiLoError, ReservationTimeout
from django_hilo.failures import Failure, classify
from django_hilo.models import HiLoDocument, ServerPrefix

logger = logging.getLogger("django_hilo")

# Flat, because pauses that double starve a node of a busy cluster (measured on Galera).
_PAUSE = 0.003
_PAUSE_BEFORE_RECONNECTING = 0.25

# Gets the locked row and the server prefix of its node; returns the columns to write,
# or None to remove the row.
Change = Callable[[HiLoDocument, str], dict[str, Any] | None]


def new_ticket(issuer: str = "") -> str:
    """Return a random mark of 32 characters, which names its issuer if there is one.

    ``issuer`` has 0 to 16 letters, none of them a hexadecimal digit alone.
    """
    return f"{issuer}{secrets.token_hex(16)}"[:32]


def change_counter(
    collection: str,
    node_tag: str,
    using: str,
    change: Change,
    retry_for: float | None = None,
) -> tuple[HiLoDocument, str]:
    """Lock a counter's row, write the columns that ``change`` returns, and commit.

    Returns the row as written and its node's server prefix. A row that is missing is
    made first, with Max 0. ``retry_for`` is in seconds (``None``: the setting).
    """
    bound = is_bound(connections[using])
    retry_for = settings.RETRY_FOR if retry_for is None else retry_for
    give_up_at = time.monotonic() + retry_for
    level = logging.WARNING
    while True:
        try:
            return _try(collection, node_tag, using, change)
        except Error as error:
            failure = classify(error, connections[using].vendor)
            _raise_final(failure, error, HiLoDocument.key(collection, node_tag), using)
            if bound or time.monotonic() > give_up_at:
                raise ConcurrencyError(
                    _gave_up(bound, using, retry_for, error)
                ) from error
            logger.log(level, "The counter on %r is tried again: %s", using, error)
            level = logging.DEBUG
        reconnects = failure is Failure.RECONNECT
        pause = _PAUSE_BEFORE_RECONNECTING if reconnects else _PAUSE
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret, only a pause


def _try(
    collection: str, node_tag: str, using: str, change: Change
) -> tuple[HiLoDocument, str]:
    longest = settings.LOCK_TIMEOUT + settings.RETRY_FOR
    with counter_connection(using, longest) as db:
        try:
            try:
                return _change_locked(db, collection, node_tag, change)
            except HiLoDocument.DoesNotExist:
                _make_row(db, collection, node_tag)
                return _change_locked(db, collection, node_tag, change)
        except Error as error:
            connection = connections[db]
            lost = classify(error, connection.vendor) is Failure.RECONNECT
            if lost and not connection.in_atomic_block:
                connection.close()
            raise


def _change_locked(
    db: str, collection: str, node_tag: str, change: Change
) -> tuple[HiLoDocument, str]:
    connection = connections[db]
    bound = is_bound(connection)
    rows = HiLoDocument.objects.using(db)
    key = HiLoDocument.key(collection, node_tag)
    prefixes = ServerPrefix.objects.filter(node_tag=node_tag).values("prefix")
    with transaction.atomic(using=db):
        if not bound:
            _prepare(connection)
        locked = rows.annotate(server_prefix=Coalesce(Subquery(prefixes), Value("")))
        if connection.features.has_select_for_update:
            locked = locked.select_for_update()
        else:
            # SQLite fails at once where a transaction reads first and writes then.
            rows.filter(pk=key).update(ticket=F("ticket"))
        document = locked.get(pk=key)
        prefix = document.server_prefix
        columns = change(document, prefix)
        if columns is None:
            rows.filter(pk=key).delete()
        elif columns:
            columns.setdefault("ticket", new_ticket())
            rows.filter(pk=key).update(**columns)
            vars(document).update(columns)
    return document, prefix


def _make_row(db: str, collection: str, node_tag: str) -> None:
    row = HiLoDocument(
        id=HiLoDocument.key(collection, node_tag),
        collection=collection.lower(),
        node_tag=node_tag,
    )
    connection = connections[db]
    bound = is_bound(connection)
    with transaction.atomic(using=db):
        # The caller may have made the row itself, in a transaction that is still open.
        if not bound:
            _prepare(connection)
        HiLoDocument.objects.using(db).bulk_create([row], ignore_conflicts=True)


def _prepare(connection: BaseDatabaseWrapper) -> None:
    """Bound the wait for the lock and the time that a lost process may hold it.

    A process that was stopped, cut off, or killed while a child of a fork shared its
    socket leaves its transaction open: the server ends it while others still wait.
    """
    wait, idle = settings.LOCK_TIMEOUT, settings.LOCK_TIMEOUT / 2
    if connection.vendor == "postgresql":
        variables = {
            "lock_timeout": str(ceil(wait * 1000)),
            "idle_in_transaction_session_timeout": str(ceil(idle * 1000)),
        }
        schema = schema_of(connection)
        if schema is not None and connection.in_atomic_block:
            quoted = connection.ops.quote_name(schema)
            variables["search_path"] = f"{quoted}, public"
        calls = ", ".join(["set_config(%s, %s, true)"] * len(variables))
        _execute(connection, f"SELECT {calls}", chain(*variables.items()))
    elif connection.vendor == "mysql":
        # Whole seconds only, and on our own connection, so that no caller meets it.
        statement = f"SET SESSION innodb_lock_wait_timeout = {ceil(wait)}"
        if connection.mysql_is_mariadb:  # type: ignore[attr-defined]
            statement += f", SESSION idle_transaction_timeout = {ceil(idle)}"
        _execute(connection, statement)


def _execute(
    connection: BaseDatabaseWrapper, statement: str, parameters: Iterable[str] = ()
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters))


def _raise_final(failure: Failure, error: Error, key: str, using: str) -> None:
    if failure is Failure.LOCKED:
        raise ReservationTimeout(
            f"The row {key!r} of HiLoDocument on {using!r} stayed locked for too long: "
            f"{error}. HILO['LOCK_TIMEOUT'] is {settings.LOCK_TIMEOUT:g} s. Find the "
            f"transaction that holds the row: it may be the one that asks for this id."
        ) from error
    if failure is Failure.NO_TABLE:
        raise HiLoError(
            f"The tables of django_hilo are missing on {using!r}. Run: "
            f"python manage.py migrate django_hilo --database={using}"
        ) from error
    if failure is Failure.OTHER:
        raise error


def _gave_up(bound: bool, using: str, retry_for: float, error: Error) -> str:
    if bound:
        return (
            f"No range could be reserved inside the transaction on {using!r}: {error}. "
            f"It is not tried again, since only you can repeat your transaction; on "
            f'SQLite, OPTIONS["transaction_mode"] = "IMMEDIATE" avoids most of these.'
        )
    return (
        f"The counter on {using!r} could not be changed for {retry_for:g} s "
        f"(HILO['RETRY_FOR']): {error}. No number was given twice; try again when the "
        f"database answers."
    )
