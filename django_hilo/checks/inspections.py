"""What deploy checks ask of a server: its settings and its replication."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._database.dialects import database_of
from django_hilo._database.dialects.base import rows_of
from django_hilo.conf import settings

_OF_GROUP = {"group_replication_applier", "group_replication_recovery"}


class Inspection:
    """Of a database that nobody asks."""

    def twice_written(self, connection: BaseDatabaseWrapper) -> set[str] | None:
        """Return the tables that another server writes as well; None: all tables.

        Those of other schemas as ``db_table`` has them, ``billing"."invoices``.
        """
        return set()

    def without_locks(
        self, connection: BaseDatabaseWrapper, tables: list[str]
    ) -> list[tuple[Any, ...]]:
        """Return which of these tables lock no rows, each with its engine."""
        return []

    def has_several_primaries(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether several nodes of a cluster take writes, as far as this one knows."""
        return False

    def most_connections(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return how many connections the server allows to this user at once."""
        return None

    def lacks_standbys(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether the server could wait for standbys, but names none."""
        return False

    def unsafe_setting(self, connection: BaseDatabaseWrapper) -> tuple[str, str] | None:
        """Return the server's setting by which a crash loses commits, and a remedy."""
        return None


class OfPostgreSQL(Inspection):
    """Of PostgreSQL."""

    def twice_written(self, connection: BaseDatabaseWrapper) -> set[str] | None:
        rows = rows_of(
            connection,
            "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname "
            """ELSE n.nspname || '"."' || c.relname END FROM pg_subscription_rel r """
            "JOIN pg_subscription s ON s.oid = r.srsubid AND s.subenabled "
            "JOIN pg_class c ON c.oid = r.srrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_publication_tables p "
            "ON p.schemaname = n.nspname AND p.tablename = c.relname",
        )
        return {name for (name,) in rows}

    def most_connections(self, connection: BaseDatabaseWrapper) -> int | None:
        [(most,)] = rows_of(
            connection,
            "SELECT least(nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1), "
            "current_setting('max_connections')::int "
            "- current_setting('superuser_reserved_connections')::int) "
            "FROM pg_roles r, pg_database d "
            "WHERE r.rolname = session_user AND d.datname = current_database()",
        )
        return int(most)

    def lacks_standbys(self, connection: BaseDatabaseWrapper) -> bool:
        query = "SELECT current_setting('synchronous_standby_names')"
        [(names,)] = rows_of(connection, query)
        return not names.strip()

    def unsafe_setting(self, connection: BaseDatabaseWrapper) -> tuple[str, str] | None:
        [(level,)] = rows_of(connection, "SELECT current_setting('synchronous_commit')")
        if settings.SYNCHRONOUS_COMMIT is not None or level != "off":
            return None
        return (
            "synchronous_commit = off",
            "Set HILO['SYNCHRONOUS_COMMIT'] = 'local', for the counters alone.",
        )


class OfMySQL(Inspection):
    """Of MySQL, with Group Replication too."""

    _sources = "SHOW REPLICA STATUS"

    def twice_written(self, connection: BaseDatabaseWrapper) -> set[str] | None:
        # It does not say which tables it replicates. Members of a group have channels
        # of their own, and are no replicas.
        [(is_read_only,)] = rows_of(connection, "SELECT @@read_only")
        if is_read_only:
            return set()
        rows = rows_of(connection, self._sources)
        return None if any(_OF_GROUP.isdisjoint(row) for row in rows) else set()

    def without_locks(
        self, connection: BaseDatabaseWrapper, tables: list[str]
    ) -> list[tuple[Any, ...]]:
        return rows_of(
            connection,
            "SELECT t.table_name, t.engine FROM information_schema.tables t "
            "JOIN information_schema.engines e ON e.engine = t.engine "
            "WHERE t.table_schema = database() AND t.table_name IN %s "
            "AND e.transactions <> 'YES'",
            [tables],
        )

    def most_connections(self, connection: BaseDatabaseWrapper) -> int | None:
        limits = "SELECT @@max_connections, @@max_user_connections"
        # 0: no limit of the user's.
        return min(int(each) for each in rows_of(connection, limits)[0] if each > 0)

    def has_several_primaries(self, connection: BaseDatabaseWrapper) -> bool:
        galera = rows_of(connection, "SHOW STATUS LIKE 'wsrep_cluster_size'")
        # Of Group Replication; its table of members needs a right of its own.
        one = "SHOW VARIABLES LIKE 'group_replication_single_primary_mode'"
        is_group = [mode for _, mode in rows_of(connection, one)] == ["OFF"]
        return is_group or any(int(size) > 1 for _, size in galera)

    def unsafe_setting(self, connection: BaseDatabaseWrapper) -> tuple[str, str] | None:
        [(flushed,)] = rows_of(connection, "SELECT @@innodb_flush_log_at_trx_commit")
        # A node of Galera that crashes gets its commits back from the others.
        galera = rows_of(connection, "SHOW VARIABLES LIKE 'wsrep_on'")
        if flushed == 1 or galera == [("wsrep_on", "ON")]:
            return None
        return (
            f"innodb_flush_log_at_trx_commit = {flushed}",
            "Set it to 1, or run hilo_raise_max after each crash of the server.",
        )


class OfMariaDB(OfMySQL):
    """Of MariaDB, with Galera too."""

    _sources = "SHOW ALL SLAVES STATUS"


_INSPECTIONS = {
    "postgresql": OfPostgreSQL(),
    "mysql": OfMySQL(),
    "mariadb": OfMariaDB(),
}


def inspection_of(connection: BaseDatabaseWrapper) -> Inspection:
    """Return what can be asked of a connection's server; connects to MySQL."""
    return _INSPECTIONS.get(database_of(connection), Inspection())
