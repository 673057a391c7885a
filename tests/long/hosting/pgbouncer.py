"""A PgBouncer of our own before the tests' PostgreSQL, in transaction mode."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.db import OperationalError, connections

from tests.long.hosting.conftest import program
from tests.support.patience import PATIENCE, wait_until
from tests.support.ports import free_port
from tests.support.servers import answers, ending_with_us

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
server_connect_timeout = {patience}
client_login_timeout = {patience}
server_check_delay = {patience}
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
    port = free_port()
    name = str(connections["default"].settings_dict["NAME"])
    folder = Path(tempfile.mkdtemp(prefix="hilo-pgbouncer-"))
    file = folder / "pgbouncer.ini"
    file.write_text(
        CONFIGURATION.format(
            name=name,
            server=_server(name),
            port=port,
            patience=PATIENCE,
            settings="\n".join(f"{key} = {value}" for key, value in settings.items()),
        )
    )
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(
            ending_with_us(program("pgbouncer"), file),
            stdout=output,
            stderr=output,
            **_another_user(folder),
        )
    try:
        log = folder / "log"
        wait_until(lambda: answers(process, port), log.read_text)
        bouncer = PgBouncer(port, f"{name}_counters")
        wait_until(lambda: _has_a_session(bouncer), log.read_text)
        yield bouncer
    finally:
        process.terminate()
        process.wait(PATIENCE)
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


def _has_a_session(bouncer: PgBouncer) -> bool:
    """Let it log in at the server: a test may let its clients wait for little."""
    client = connections["default"].copy()
    client.settings_dict.update(bouncer.entry)
    try:
        with client.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return False
    finally:
        client.close()
    return True
