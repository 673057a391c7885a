"""A server of PostgreSQL that may be copied to a standby, and promoted."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.long.cluster.load import environment
from tests.support.databases import ENGINES
from tests.support.own_servers import PostgreSQL as OwnPostgreSQL

LOCK_TIMEOUT = 2.0
_OPTIONS = {
    "shared_buffers": "16MB",
    "max_wal_senders": "5",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
    "log_min_messages": "warning",
}


class PostgreSQL(OwnPostgreSQL):
    """A server that may be stopped, killed, copied to a standby, and promoted."""

    def __init__(self, programs: Path, folder: Path, name: str) -> None:
        super().__init__(folder / name, programs)
        self.name = name

    def initialize(self, **options: str) -> None:
        """Make the data folder."""
        self.make_folder()
        self.install(**{**_OPTIONS, **options})

    def copy_of(self, stopped: PostgreSQL) -> None:
        """Make the data folder that another server has, which is not running."""
        assert not stopped.is_running
        self.make_folder()
        subprocess.run(["cp", "-a", stopped.data, self.data], check=True)
        (self.data / "postmaster.opts").unlink(missing_ok=True)

    def standby_of(self, primary: PostgreSQL) -> None:
        """Make the data folder of a standby, whose application_name is its name."""
        self.make_folder()
        self.run(
            *(self.bin / "pg_basebackup", "-D", self.data, "-R", "-X", "stream"),
            *("-c", "fast", "--no-sync"),
            *("-h", "127.0.0.1", "-p", primary.port, "-U", self.user),
        )
        self.configure({"primary_conninfo": self._link_to(primary)})

    def _link_to(self, primary: PostgreSQL) -> str:
        return (
            f"host=127.0.0.1 port={primary.port} user={self.user} "
            f"application_name={self.name}"
        )

    def cut_off(self) -> None:
        """Let the standby hear nothing from its primary; clients still reach both."""
        # A port that nobody listens on.
        self._set("primary_conninfo", "host=127.0.0.1 port=1")
        self.wait_for(lambda: not self._receivers(), "cut off")

    def link_to(self, primary: PostgreSQL) -> None:
        """Let a standby follow a primary."""
        self._set("primary_conninfo", self._link_to(primary))
        self.wait_for(lambda: "streaming" in self._receivers(), "streaming")

    def set(self, name: str, value: str) -> None:
        """Change a setting that a reload is enough for, and wait until it holds."""
        self._set(name, value)
        self.wait_for(
            lambda: self.execute(f"SHOW {name}") == [{name: value}], f"at {value!r}"
        )

    def _set(self, name: str, value: str) -> None:
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def _receivers(self) -> list[str]:
        return [row["status"] for row in self.execute("TABLE pg_stat_wal_receiver")]

    def promote(self) -> None:
        """Make the standby a primary, and wait until it is one."""
        self.execute("SELECT pg_promote()")

    def wait_until_applied_by(self, standby: PostgreSQL) -> None:
        """Wait until a standby has applied all that is committed here now."""
        [row] = self.execute("SELECT pg_current_wal_lsn() AS now")
        query = f"SELECT pg_last_wal_replay_lsn() >= '{row['now']}' AS done"
        standby.wait_for(lambda: standby.execute(query)[0]["done"], "up to date")


def environment_on(
    servers: list[PostgreSQL], name: str, tag: str, commit: str = "", **database: object
) -> dict[str, str]:
    """Return the environment of a Django process on the first that takes writes."""
    options = {"connect_timeout": 180, "target_session_attrs": "read-write"}
    return environment(
        {
            "ENGINE": ENGINES["postgres"],
            "NAME": name,
            "USER": PostgreSQL.user,
            # Of several servers libpq takes the first that is no standby.
            "HOST": ",".join("127.0.0.1" for _ in servers),
            "PORT": ",".join(str(server.port) for server in servers),
            "OPTIONS": options,
            **database,
        },
        NODE_TAG=tag,
        LOCK_TIMEOUT=LOCK_TIMEOUT,
        RETRY_FOR=5.0,
        SYNCHRONOUS_COMMIT=commit or None,
    )
