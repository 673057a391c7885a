"""PostgreSQL's schemas: one database, several tables of counters.

django-tenants tells by ``connection.schema_name`` which schema a connection works in;
others may set the same attribute. What memory holds is kept apart by it, since the
search path itself cannot be known without a query.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo.exceptions import HiLoError
from django_hilo.models import HiLoDocument

_PATH_AND_TABLE = "SELECT current_setting('search_path'), to_regclass(%s)::oid"
_EXISTS = "SELECT EXISTS (SELECT FROM pg_class WHERE oid = %s)"


def schema_of(connection: BaseDatabaseWrapper) -> str | None:
    """Return the schema that a connection was switched to, None where nobody tells."""
    return getattr(connection, "schema_name", None)


class SearchPaths:
    """Sees to it that a database's counters are always in the same schema."""

    def __init__(self) -> None:
        self._tables: dict[Any, int] = {}

    def of(self, connection: BaseDatabaseWrapper, database: Any) -> str:
        """Return the search path of a PostgreSQL connection.

        Raises `HiLoError` where it leads to another table of counters than before,
        unless the ``schema_name`` in the key ``database`` tells the two apart.
        """
        with connection.cursor() as cursor:
            cursor.execute(_PATH_AND_TABLE, [HiLoDocument._meta.db_table])
            path, table = cursor.fetchone()
            known = self._tables.setdefault(database, table)
            if table is not None and table != known:
                cursor.execute(_EXISTS, [known])
                if cursor.fetchone()[0]:
                    raise HiLoError(
                        f"The search_path {path!r} on {connection.alias!r} leads to "
                        f"another table of HiLoDocument than before, and this process "
                        f"holds ranges of the first. Set connection.schema_name "
                        f"together with search_path, as django-tenants does."
                    )
                self._tables[database] = table
        return str(path)
