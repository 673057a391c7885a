"""A PgBouncer of our own before the tests' PostgreSQL, in transaction mode."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.db import connections

from tests.hosting.conftest import program
from tests.servers import ending_with_us

CONFIGURATION = """
[databases]
{name} = {server}
{name}_counters = {server} pool_size=2

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
{settings}
"""


class PgBouncer(NamedTuple):
    """Where it listens, and the name of a second, small pool of the same database."""

    port: int
    counters: str

    @property
    def entry(self) -> dict[str, Any]:
        """What to change in an entry of DATABASES, as Django's own pages have it."""
        return {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "DISABLE_SERVER_SIDE_CURSORS": True,
        }


@contextmanager
def pgbouncer(**settings: float) -> Iterator[PgBouncer]:
    """Start it with settings of its [pgbouncer] section; stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = str(connections["default"].settings_dict["NAME"])
    folder = Path(tempfile.mkdtemp(prefix="hilo-pgbouncer-"))
    file = folder / "pgbouncer.ini"
    file.write_text(
        CONFIGURATION.format(
            name=name,
            server=_server(name),
            port=port,
            settings="\n".join(f"{key} = {value}" for key, value in settings.items()),
        )
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ending_with_us(program("pgbouncer"), file),
            stdout=log,
            stderr=log,
            **_another_user(folder),
        )
    try:
        _wait_until_up(process, port, folder / "log")
        yield PgBouncer(port, f"{name}_counters")
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def _server(name: str) -> str:
    options = connections["default"].settings_dict
    words = {
        "host": options["HOST"],
        "port": options["PORT"] or "5432",
        "user": options["USER"],
        "password": options["PASSWORD"],
        "dbname": name,
    }
    return " ".join(f"{key}={value}" for key, value in words.items() if value)


def _another_user(folder: Path) -> dict[str, Any]:
    if os.geteuid():
        return {}
    # It refuses to run as root.
    user = pwd.getpwnam("postgres")
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.02)  # it is still starting
