"""MariaDB: as MySQL, its errors too, but for idle transactions and AUTO_INCREMENT."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects.base import rows_of
from django_hilo._database.dialects.mysql import MySQL


class MariaDB(MySQL):
    """MariaDB, by mysqlclient or PyMySQL; with Galera too."""

    name = "MariaDB"
    # The second holds inside a transaction, if the server sets one.
    _idle_limits = ("wait_timeout", "idle_transaction_timeout")

    def last_default(self, connection: BaseDatabaseWrapper, table: str) -> list[Any]:
        # It counts rows that are not committed yet, and deleted ones.
        rows = rows_of(
            connection,
            "SELECT auto_increment - 1 FROM information_schema.tables "
            "WHERE table_schema = database() AND table_name = %s",
            [table],
        )
        return [value for (value,) in rows]
