"""A primary, its replica, and a third server for the time after a failover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.long.cluster.load import environment, migrate
from tests.long.cluster.route import Route
from tests.support.databases import ENGINES
from tests.support.own_servers import MariaDB
from tests.support.pages import blocks, page

PAGE = page("how-to/mariadb-replication.md")
DATABASE, USER = "hilo", "shop"
# How long things may take, in seconds.
LOCK_TIMEOUT, RETRY_FOR = 4.0, 5.0
READ_TIMEOUT = 6


class Replica(MariaDB):
    """A server that follows another, or is followed."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(folder / f"server{number}")
        [my_cnf] = blocks(PAGE, "The servers", "ini")
        mine = my_cnf.removeprefix("[mysqld]\n").replace("= 1\n", f"= {number}\n", 1)
        self.options = MariaDB.options + mine

    def enter(self, title: str, number: int) -> Any:
        """Enter the statements of one block of a section; return rows of the last."""
        script = blocks(PAGE, title, "sql")[number]
        script = script.strip().removesuffix(";")
        here = f"'127.0.0.1', MASTER_PORT = {self.primary_port}"
        return self.execute(*script.replace("'10.0.0.1'", here).split(";\n"))

    primary_port = 0

    def follow(self, primary: Replica) -> None:
        """Replicate from a server, and wait until it knows."""
        self.primary_port = primary.port
        self.enter("The servers", 1)
        self.wait_for(lambda: primary.status("clients") > 0, "following")

    def status(self, name: str) -> int:
        """Return a figure of its semi-synchronous replication."""
        [row] = self.execute(f"SHOW STATUS LIKE 'Rpl_semi_sync_master_{name}'")
        return int(row[1])

    def promote(self) -> None:
        """Follow the run-book."""
        title = "Run-book: failover"
        self.wait_for(
            lambda: "Slave has read all relay log" in str(self.enter(title, 0)),
            "up to date",
        )
        self.enter(title, 1)


class Replicated:
    """The servers, and the address of the primary."""

    def __init__(self, folder: Path) -> None:
        self.servers = [Replica(number, folder) for number in (1, 2, 3)]
        self.primary, self.replica, self.third = self.servers

    def start(self) -> None:
        """Start the primary, and a replica that follows it."""
        for server in self.servers:
            server.create()
        self.route = Route(self.primary)
        self.primary.execute(
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
            f"CREATE USER {USER}",
            f"GRANT ALL ON {DATABASE}.* TO {USER}",
        )
        self.primary.enter("The servers", 0)
        self.replica.follow(self.primary)
        migrate(self.environment())

    def environment(self) -> dict[str, str]:
        """Return that of a Django process, which knows the address alone."""
        return environment(
            {
                "ENGINE": ENGINES["mariadb"],
                "NAME": DATABASE,
                "USER": USER,
                "HOST": "127.0.0.1",
                "PORT": self.route.port,
                "OPTIONS": {
                    "charset": "utf8mb4",
                    "isolation_level": "read committed",
                    "connect_timeout": READ_TIMEOUT,
                    "read_timeout": READ_TIMEOUT,
                    "write_timeout": READ_TIMEOUT,
                },
            },
            LOCK_TIMEOUT=LOCK_TIMEOUT,
            RETRY_FOR=RETRY_FOR,
        )

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
        if hasattr(self, "route"):
            self.route.close()
