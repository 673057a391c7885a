"""A primary that fails, and the standby that takes its place."""

from pathlib import Path

from tests.long.cluster.load import migrate, running
from tests.long.cluster.postgres.server import PostgreSQL, environment_on

DATABASE = "hilo"


def prepared_server(programs: Path, folder: Path) -> PostgreSQL:
    """Return a server that is stopped, whose database has all tables."""
    server = PostgreSQL(programs, folder, "prepared")
    server.initialize()
    with running(server):
        server.execute(f"CREATE DATABASE {DATABASE}")
        migrate(environment_on([server], DATABASE, "A"))
    return server


class Replicated:
    """Two servers, and a third where the second has taken over."""

    def __init__(self, prepared: PostgreSQL, folder: Path) -> None:
        programs = prepared.bin
        self.primary = PostgreSQL(programs, folder, "primary")
        self.standby = PostgreSQL(programs, folder, "standby")
        self.third = PostgreSQL(programs, folder, "third")
        self._prepared = prepared

    def start(self) -> None:
        """Start the primary, and a standby that follows it."""
        self.primary.copy_of(self._prepared)
        self.primary.start()
        self.add_standby(self.standby, self.primary)

    def add_standby(self, standby: PostgreSQL, primary: PostgreSQL) -> None:
        """Start a standby, and wait until it follows."""
        standby.standby_of(primary)
        standby.start()
        standby.link_to(primary)

    def wait_for_standby(self) -> None:
        """Let commits of SYNCHRONOUS_COMMIT wait for any of the standbys.

        On the standby too, which is to be the primary one day.
        """
        names = f"ANY 1 ({self.standby.name}, {self.third.name})"
        for server in (self.standby, self.primary):
            # All other commits wait for the own disk alone.
            server.set("synchronous_commit", "local")
            server.set("synchronous_standby_names", names)
        query = "SELECT sync_state FROM pg_stat_replication"
        self.primary.wait_for(
            lambda: self.primary.execute(query) == [{"sync_state": "quorum"}],
            "replicating synchronously",
        )

    def environment(self, commit: str = "", **database: object) -> dict[str, str]:
        """Return that of a Django process that finds the primary by itself."""
        return environment_on(
            [self.primary, self.standby], DATABASE, "A", commit, **database
        )

    def lag(self) -> None:
        """Let the standby have all that is committed now, and nothing more."""
        self.primary.wait_until_applied_by(self.standby)
        self.standby.cut_off()

    def wait_for_waiting(self, server: PostgreSQL) -> None:
        """Wait until a commit on a server waits for a standby."""
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        server.wait_for(lambda: server.execute(query), "waiting for a standby")

    def fail_over(self) -> None:
        """Kill the primary, and promote the standby."""
        self.primary.kill()
        self.standby.promote()

    def max(self, server: PostgreSQL) -> int:
        """Return Max of the orders' counter."""
        query = "SELECT max FROM django_hilo_hilodocument WHERE id = 'orders/A'"
        [row] = server.execute(query, database=DATABASE)
        return int(row["max"])

    def orders(self, server: PostgreSQL) -> set[str]:
        """Return the ids of a server's orders."""
        rows = server.execute("SELECT id FROM records_order", database=DATABASE)
        return {row["id"] for row in rows}

    def stop(self) -> None:
        for server in (self.third, self.standby, self.primary):
            server.stop()
