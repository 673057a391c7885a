"""Change a counter's row under its lock, in a short transaction tried again as a whole.

Nothing else writes the table, so every change burns the ticket of the newest range.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from django.db import Error, connections
from django.db.models import F, Subquery, Value
from django.db.models.functions import Coalesce

from django_hilo.attempts import attempt, short_transaction
from django_hilo.exceptions import TableMissing
from django_hilo.failures import Failure, classify
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.servers import server_name
from django_hilo.standbys import insist

logger = logging.getLogger("django_hilo")

# Gets the locked row and the server prefix of its node; returns the columns to write,
# or None to remove the row.
Change = Callable[[HiLoDocument, str], dict[str, Any] | None]

# Gets the alias to work on. Returns the row as written and the server prefix, or None
# where it wrote nothing and the row must be locked for the change.
DirectWay = Callable[[str], tuple[HiLoDocument, str] | None]


def no_direct_way(db: str) -> None:
    """Leave every change to the row's lock."""


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
    direct: DirectWay = no_direct_way,
) -> tuple[HiLoDocument, str]:
    """Lock a counter's row, write the columns that ``change`` returns, and commit.

    Returns the row as written and its node's server prefix. A row that is missing is
    made first, with Max 0. ``retry_for`` is in seconds (``None``: the setting). A
    ``direct`` is tried first; it does the same as ``change``, where it can.
    """

    def operate(db: str) -> tuple[HiLoDocument, str]:
        changed = direct(db)
        if changed is not None:
            return changed
        try:
            return _change_locked(db, using, collection, node_tag, change)
        except HiLoDocument.DoesNotExist:
            _make_row(db, collection, node_tag)
            return _change_locked(db, using, collection, node_tag, change)

    migrate = f"Run: python manage.py migrate django_hilo --database={using}"
    try:
        return attempt(
            operate,
            using,
            f"The row {HiLoDocument.key(collection, node_tag)!r} of HiLoDocument",
            if_missing=f"The tables of django_hilo are missing on {using!r}. {migrate}",
            retry_for=retry_for,
        )
    except Error as error:
        if classify(error, connections[using].vendor) is Failure.NO_COLUMN:
            raise TableMissing(
                f"The tables of django_hilo on {using!r} are of an older version. "
                f"{migrate}"
            ) from error
        raise


def _change_locked(
    db: str, using: str, collection: str, node_tag: str, change: Change
) -> tuple[HiLoDocument, str]:
    rows = HiLoDocument.objects.using(db)
    key = HiLoDocument.key(collection, node_tag)
    prefixes = ServerPrefix.objects.filter(node_tag=node_tag).values("prefix")
    with short_transaction(db) as connection:
        locked = rows.annotate(
            server_prefix=Coalesce(Subquery(prefixes), Value("")),
            server=server_name(db),
        )
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
            if columns.get("max", document.max) > document.max:
                columns["raised_by"] = _told_of(document, using)
                insist(connection)
            elif "floor" in columns:
                insist(connection)
            rows.filter(pk=key).update(**columns)
            vars(document).update(columns)
    return document, prefix


def _told_of(document: HiLoDocument, using: str) -> str:
    """Return the name of the server, and warn where another one raised Max before."""
    # The query of _change_locked() annotates it.
    server: str = document.server  # type: ignore[attr-defined]
    if not server:
        return document.raised_by  # it has no name, or this role may not know
    if document.raised_by not in ("", server):
        logger.warning(
            "The counter %r on %r was raised by the server %r before, and is by %r "
            "now. After a failover or a restore, run: python manage.py hilo_raise_max "
            "--database=%s. Otherwise two sites have the node tag %r, and give the "
            "same ids: give each its own.",
            *(document.id, using, document.raised_by, server, using),
            document.node_tag,
        )
    return server


def _make_row(db: str, collection: str, node_tag: str) -> None:
    row = HiLoDocument(
        id=HiLoDocument.key(collection, node_tag),
        collection=collection.lower(),
        node_tag=node_tag,
    )
    # The caller may have made the row itself, in a transaction that is still open.
    with short_transaction(db):
        HiLoDocument.objects.using(db).bulk_create([row], ignore_conflicts=True)
