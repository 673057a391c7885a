"""MySQL: error numbers, and waits that are variables of the session."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from typing import Any

from django.db import Error, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from django_hilo._database.dialects.base import (
    Dialect,
    ErrorKind,
    lower_option,
    rows_of,
)
from django_hilo.conf import settings

# Too many connections, of all or of one user.
_FULL = (1040, 1203, 1226)

# Of MySQL and MariaDB: until it is connected, nobody knows which of them it is.
_KINDS: dict[int | None, ErrorKind] = {
    1213: ErrorKind.RETRY,  # deadlock; on Galera also at COMMIT
    1020: ErrorKind.RETRY,  # record changed since the snapshot
    1062: ErrorKind.RETRY,  # another process made the first row
    # Another member of the group changed the row; 1180 is also Galera's lost quorum.
    **dict.fromkeys((1180, 3101), ErrorKind.RETRY),
    1205: ErrorKind.LOCKED,  # innodb_lock_wait_timeout
    1317: ErrorKind.LOCKED,  # KILL QUERY
    1969: ErrorKind.LOCKED,  # MariaDB's max_statement_time
    3024: ErrorKind.LOCKED,  # MySQL's max_execution_time
    1146: ErrorKind.NO_TABLE,
    1054: ErrorKind.NO_COLUMN,
    **dict.fromkeys(_FULL, ErrorKind.RECONNECT),
    # Galera's node is not ready; shutdown.
    **dict.fromkeys((1047, 1053), ErrorKind.RECONNECT),
    1290: ErrorKind.RECONNECT,  # read-only: a replica, or a member without its group
    # The connection was killed, on MariaDB and on MySQL; idle for over wait_timeout.
    **dict.fromkeys((1927, 3169, 4031), ErrorKind.RECONNECT),
    # The client's; and of a member that was expelled, or left its group at COMMIT.
    **dict.fromkeys((2002, 2003, 2006, 2013, 2055, 3032, 3100), ErrorKind.RECONNECT),
}


class MySQL(Dialect):
    """MySQL, by mysqlclient or PyMySQL."""

    name = "MySQL"
    always_own_connection = True
    compares_loosely = True
    _idle_limits: tuple[str, ...] = ("wait_timeout",)

    def classify(self, error: Exception) -> ErrorKind:
        code = _code_of(error)
        if isinstance(error, InterfaceError) and code in (0, ""):
            return ErrorKind.RECONNECT  # the driver's connection is closed already
        return _KINDS.get(code, ErrorKind.OTHER)

    def is_full(self, error: Exception) -> bool:
        return _code_of(error) in _FULL

    def confirm_locked(self, connection: BaseDatabaseWrapper) -> None:
        # With wsrep_sync_wait a node of Galera without quorum answers so to any query,
        # also to Django's when it connects.
        try:
            rows_of(connection, "SELECT 1")
        except Error as error:
            if self.classify(error) is ErrorKind.LOCKED:
                text = f"wsrep_sync_wait failed, the node may have no quorum: {error}"
                raise OperationalError(1047, text) from None

    def has_rolled_back(
        self, connection: BaseDatabaseWrapper, error: Exception
    ) -> bool:
        return error.args[:1] == (1213,)

    def prepare_own(self, connection: BaseDatabaseWrapper, longest: int) -> None:
        options = connection.settings_dict["OPTIONS"]
        options["isolation_level"] = "read committed"
        # A server that is stopped keeps its connections open, and sends nothing.
        for bound in "connect_timeout", "read_timeout", "write_timeout":
            lower_option(options, bound, longest)
        # Django turns autocommit off and on again around a transaction, by a statement
        # each, unless a backend has this method, as SQLite's.
        begin = partial(rows_of, connection, "BEGIN")
        vars(connection)["_start_transaction_under_autocommit"] = begin

    def begin(self, connection: BaseDatabaseWrapper, *, locks_row: bool) -> None:
        # The server ends the session of a lost process, and one that a burst left open.
        idle = ceil(settings.LOCK_TIMEOUT / 2)
        limits = [f", SESSION {each} = {idle}" for each in self._idle_limits]
        bounds = self._bound() + "".join(limits)
        # Only our own connection begins transactions here: once a session is enough.
        session = connection.connection, bounds
        if vars(connection).get("hilo_session") != session:
            rows_of(connection, bounds)
            vars(connection)["hilo_session"] = session

    def _bound(self) -> str:
        seconds = ceil(settings.LOCK_TIMEOUT)
        return f"SET SESSION innodb_lock_wait_timeout = {seconds}"

    @contextmanager
    def bounded_wait(
        self, connection: BaseDatabaseWrapper, *, locks_row: bool = True
    ) -> Iterator[None]:
        [(before,)] = rows_of(connection, "SELECT @@innodb_lock_wait_timeout")
        restore = f"SET SESSION innodb_lock_wait_timeout = {before}"
        rows_of(connection, self._bound())
        try:
            yield
            # Galera may report here that another node rolled the transaction back.
            rows_of(connection, restore)
        except BaseException:
            with suppress(Error):  # the connection is lost
                rows_of(connection, restore)
            raise

    def locked(self, connection: BaseDatabaseWrapper, row: Model) -> Any:
        """Lock and return the row with the key of this one, which may be missing.

        INSERT IGNORE would share the lock among several first callers, each of whom
        then waits for the others; and a lock of a missing row is one of the gap.
        """
        fields, meta = row._meta.fields, row._meta
        columns = ", ".join(f"`{field.column}`" for field in fields)
        marks = ", ".join(["%s"] * len(fields))
        key = f"`{meta.pk.column}`"
        insert = f"INSERT INTO `{meta.db_table}` ({columns}) VALUES ({marks})"  # noqa: S608 - our own names
        rows_of(
            connection,
            f"{insert} ON DUPLICATE KEY UPDATE {key} = {key}",
            [field.value_from_object(row) for field in fields],
        )
        rows = type(row)._default_manager.using(connection.alias)
        return rows.select_for_update().get(pk=row.pk)

    def last_default(self, connection: BaseDatabaseWrapper, table: str) -> list[Any]:
        # information_schema says for a day what it said first.
        statement = f"SHOW CREATE TABLE {connection.ops.quote_name(table)}"
        [(_, definition)] = rows_of(connection, statement)
        found = re.search(r"\n\) ENGINE=\w+ AUTO_INCREMENT=(\d+)", definition)
        return [int(found[1]) - 1] if found else []


def _code_of(error: Exception) -> Any:
    cause = error.__cause__ or error
    return cause.args[0] if cause.args else None
