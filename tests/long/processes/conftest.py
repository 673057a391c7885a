"""A server of its own for many processes."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.databases import CHOSEN, URL_VARIABLES
from tests.support.own_server import missing_programs
from tests.support.own_servers import KINDS, MariaDB, OwnServer
from tests.support.programs import require


@pytest.fixture
def server(request) -> Iterator[OwnServer]:
    """A server that takes as many connections as the module's ``CONNECTIONS``."""
    if CHOSEN not in KINDS:
        pytest.skip("SQLite has one writer")
    kind = KINDS[CHOSEN]
    connections = request.module.CONNECTIONS
    if lacks := missing_programs(*kind.programs):
        require(f"no {CHOSEN} of its own without {', '.join(lacks)}")
    with tempfile.TemporaryDirectory(prefix="hilo-processes-") as name:
        Path(name).chmod(0o755)  # for the system user of the server
        server = kind(Path(name) / CHOSEN)
        if isinstance(server, MariaDB):
            server.options += f"max_connections={connections}\n"
        server.make_folder()
        more = {} if isinstance(server, MariaDB) else {"max_connections": connections}
        server.install(**more)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture
def environment(server) -> dict[str, str]:
    """The environment of Django's processes in a new database of the server."""
    server.execute("CREATE DATABASE hilo")
    environment = {
        **os.environ,
        URL_VARIABLES[CHOSEN]: server.url,
        "HILO_TEST_NAMES": json.dumps({"default": "hilo", "other": "hilo"}),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    migrate = ("migrate", "--run-syncdb", "--verbosity=0")
    run(sys.executable, "-m", "django", *migrate, env=environment)
    return environment
