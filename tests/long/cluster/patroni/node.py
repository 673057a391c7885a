"""A server of PostgreSQL that Patroni starts, promotes and demotes."""

import json
import os
import signal
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from psycopg import Error

from tests.support.own_server import Server
from tests.support.own_servers import PostgreSQL
from tests.support.patience import PATIENCE
from tests.support.ports import free_port

SCOPE = "hilo"
# Patroni's own are 30, 10 and 10; TTL is at least LOOP_WAIT + 2 * RETRY_TIMEOUT.
TTL = 15
LOOP_WAIT = 2
RETRY_TIMEOUT = 5
PARAMETERS = {
    "fsync": "off",
    "max_connections": 100,
    "shared_buffers": "16MB",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
}


class Etcd(Server):
    """Where Patroni keeps who leads."""

    system_user = "postgres"
    programs = ("etcd",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "etcd")
        self.peer_port = free_port()

    def command(self) -> list[str]:
        own, peers = (
            f"http://127.0.0.1:{self.port}",
            f"http://127.0.0.1:{self.peer_port}",
        )
        return [
            *("etcd", "--name=e", f"--data-dir={self.folder}/data"),
            *(f"--listen-client-urls={own}", f"--advertise-client-urls={own}"),
            *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
            f"--initial-cluster=e={peers}",
        ]

    def install(self) -> None:
        pass

    def answers(self) -> bool:
        return ask(f"http://127.0.0.1:{self.port}/health") == {"health": "true"}


class Node(PostgreSQL):
    """Patroni, and the server that it started; both are killed as one."""

    programs = ("patroni", "initdb", "postgres")
    # Patroni stops its server, which does not end with it.
    ends_with = "TERM"

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(folder / f"n{number}")
        self.name = f"n{number}"
        # As which it follows the primary, whoever that is.
        self.role = f"follower{number}"
        self.rest_port = free_port()
        self.rest = f"127.0.0.1:{self.rest_port}"

    def prepare(self, etcd: Etcd, synchronous: bool) -> None:
        """Make the folder with Patroni's configuration; JSON is YAML, too."""
        self.make_folder()
        server = f"127.0.0.1:{self.port}"
        roles = {"superuser": self.user, "replication": self.role}
        configuration = {
            "scope": SCOPE,
            "name": self.name,
            "restapi": {"listen": self.rest, "connect_address": self.rest},
            "etcd3": {"host": f"127.0.0.1:{etcd.port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": LOOP_WAIT,
                    "retry_timeout": RETRY_TIMEOUT,
                    "synchronous_mode": synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "data_dir": str(self.data),
                "bin_dir": str(self.bin),
                "pgpass": f"{self.folder}/pgpass",
                "authentication": {
                    purpose: {"username": name} for purpose, name in roles.items()
                },
                "parameters": {"unix_socket_directories": str(self.folder)},
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
                "basebackup": [{"checkpoint": "fast"}],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }
        (self.folder / "patroni.yml").write_text(json.dumps(configuration, indent=1))

    def command(self) -> list[str]:
        return ["patroni", f"{self.folder}/patroni.yml"]

    @property
    def state(self) -> dict[str, Any]:
        """What Patroni says of its server; empty if it says nothing."""
        return ask(f"http://{self.rest}/patroni")

    def answers(self) -> bool:
        return bool(self.state)

    def is_primary(self) -> bool:
        """Whether the server takes writes."""
        try:
            [row] = self.execute("SELECT pg_is_in_recovery() AS is_standby")
        except Error:
            return False
        return not row["is_standby"]

    def members(self) -> list[dict[str, Any]]:
        """Return what Patroni says of all members that it knows."""
        return list(ask(f"http://{self.rest}/cluster").get("members", []))

    def switch_over(self) -> None:
        """Ask Patroni to let another node lead."""
        ask(f"http://{self.rest}/switchover", {"leader": self.name})

    def kill_server(self) -> None:
        """Kill all processes of the server, and not Patroni."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill Patroni and the server, as a power cut would."""
        super().kill()
        while self.pids():
            self.kill_server()

    def pids(self) -> list[int]:
        """Return the processes of the server, whose parent is not Patroni."""
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if (process / "cwd").readlink() == self.data:
                    pids.append(int(process.name))
        return pids

    def resume(self) -> bool:
        """Apply again what the primary sends; return whether the server is up."""
        try:
            if not self.is_primary():
                self.execute("SELECT pg_wal_replay_resume()")
        except Error:  # it starts, or was promoted meanwhile
            return False
        return True


def ask(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON that a server answers, whatever its status; empty for none."""
    request = Request(url, json.dumps(body).encode() if body else None)
    try:
        try:
            with urlopen(request, timeout=PATIENCE if body else 5) as answer:
                text = answer.read()
        except HTTPError as error:
            text = error.read()
        return dict(json.loads(text))
    except (OSError, HTTPException, ValueError):
        return {}
