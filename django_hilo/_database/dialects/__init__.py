"""One dialect for each database: `dialect_of` finds that of a connection."""

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

from django_hilo._database.dialects.base import Dialect, ErrorKind
from django_hilo._database.dialects.mariadb import MariaDB
from django_hilo._database.dialects.mysql import MySQL
from django_hilo._database.dialects.postgresql import PostgreSQL
from django_hilo._database.dialects.sqlite import SQLite
from django_hilo.exceptions import HiLoError

__all__ = ["Dialect", "ErrorKind", "classify", "database_of", "dialect_of"]

_UNKNOWN = Dialect()
_MARIADB = MariaDB()
_BY_VENDOR = {"postgresql": PostgreSQL(), "mysql": MySQL(), "sqlite": SQLite()}


def dialect_of(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of a connection's database; never sends a query.

    Django's vendor "mysql" is MySQL or MariaDB. Django asks the server when it
    connects; until then the answer is MySQL, so open the connection first if the
    difference matters.
    """
    dialect = _BY_VENDOR.get(connection.vendor, _UNKNOWN)
    if connection.vendor == "mysql" and connection.connection is not None:
        # Connections of this vendor have it; the base class does not.
        return _MARIADB if connection.mysql_is_mariadb else dialect  # type: ignore[attr-defined]
    return dialect


def database_of(connection: BaseDatabaseWrapper) -> str:
    """Return Django's vendor of a database, or "mariadb"; may connect to learn it."""
    if connection.vendor == "mysql" and connection.mysql_is_mariadb:  # type: ignore[attr-defined]
        return "mariadb"
    return connection.vendor


def classify(error: Exception, connection: BaseDatabaseWrapper) -> ErrorKind:
    """Return the kind of an error that a connection raised; never sends a query."""
    # The first comes after all retries; the second names an earlier error as cause.
    if isinstance(error, HiLoError | TransactionManagementError):
        return ErrorKind.OTHER
    # Not dialect_of(): the connection may be lost, and MariaDB has MySQL's numbers.
    return _BY_VENDOR.get(connection.vendor, _UNKNOWN).classify(error)
