"""MariaDB: as MySQL, with bounds for one statement and for idle transactions."""

from math import ceil

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import rows_of
from django_hilo._database.dialects.mysql import MySQL
from django_hilo.conf import settings


class MariaDB(MySQL):
    """MariaDB, by mysqlclient or PyMySQL; with Galera too."""

    name = "MariaDB"

    def _waits(self, seconds: int) -> str:
        idle = ceil(settings.LOCK_TIMEOUT / 2)
        return f"{super()._waits(seconds)}, SESSION idle_transaction_timeout = {idle}"

    def _bound_of_statement(self) -> str:
        seconds = ceil(settings.LOCK_TIMEOUT)
        return f"SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR "

    def twice_written(self, connection: BaseDatabaseWrapper) -> set[str] | None:
        # It does not say which tables it replicates. Nodes of Galera are no replicas.
        [(is_read_only,)] = rows_of(connection, "SELECT @@read_only")
        if is_read_only:
            return set()
        return None if rows_of(connection, "SHOW ALL SLAVES STATUS") else set()
