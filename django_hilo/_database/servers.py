"""Which server a counter is on, so that a change of it can be told.

PostgreSQL is named by its system identifier and timeline: another site differs in the
first, a failover and a restore in the second. MariaDB is named by its server_id, which
asynchronous replication demands to be each server's own. Nodes of Galera are one
server here: none of them commits what another has not seen.
"""

from __future__ import annotations

from django.db import DatabaseError, connections, transaction
from django.db.models import CharField
from django.db.models.expressions import RawSQL

from django_hilo._database.connection import DatabaseKey, database_key
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo.models import HiLoDocument

_UNKNOWN = "''"
_SERVER_ID = "concat('server_id ', @@global.server_id)"
# A number, from MariaDB 12 on a text (MDEV-36425).
_READ_ONLY = "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')"
# What servers of a kind may understand, the most telling first; the last asks nothing.
_NAMES = {
    "postgresql": (
        "(SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE concat(system_identifier, "
        "'/', left(pg_walfile_name(pg_current_wal_lsn()), 8)) END "
        "FROM pg_control_system())",
        "(SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE concat(system_identifier) "
        "END FROM pg_control_system())",
        _UNKNOWN,
    ),
    "mysql": (
        f"IF(@@global.wsrep_on OR {_READ_ONLY}, '', {_SERVER_ID})",
        # Built without Galera, as MySQL is.
        f"IF({_READ_ONLY}, '', {_SERVER_ID})",
        _UNKNOWN,
    ),
}

_understood: dict[DatabaseKey, str] = {}


def server_name(db: str) -> RawSQL:
    """Return an expression for the name of the server that runs a query."""
    return RawSQL(server_name_sql(db), (), output_field=CharField())  # noqa: S611 - our own SQL


def server_name_sql(db: str) -> str:
    """Return the SQL of `server_name`.

    The first time in a process it asks the server what it understands.
    """
    key = database_key(connections[db].alias)
    if key not in _understood:
        _understood[key] = _first_understood(db)
    return _understood[key]


def _first_understood(db: str) -> str:
    connection = connections[db]
    *names, unknown = _NAMES.get(connection.vendor, (_UNKNOWN,))
    for name in names:
        try:
            with (
                transaction.atomic(using=db),
                connection.cursor() as cursor,
            ):
                cursor.execute(f"SELECT {name}")
            return name
        except DatabaseError as error:
            if classify(error, connection) is not ErrorKind.OTHER:
                raise
    return unknown


def raised_elsewhere(db: str, node_tag: str) -> list[tuple[HiLoDocument, str]]:
    """Return the counters of a tag, and of none, that another server raised last.

    Each with the name of the server that answers now.
    """
    rows = (
        HiLoDocument.objects.using(db)
        .filter(node_tag__in=("", node_tag))
        .exclude(raised_by="")
        .annotate(server=server_name(db))
    )
    return [
        (document, document.server)
        for document in rows
        if document.server not in ("", document.raised_by)
    ]
