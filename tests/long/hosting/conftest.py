import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from tests.conftest import PREAMBLE
from tests.long.hosting.servers import Server
from tests.support.commands import output_of
from tests.support.programs import require


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "everywhere: worth its time on each database, not on one only"
    )


@pytest.fixture
def environment(transactional_db) -> Callable[..., dict[str, str]]:
    """Make the environment of a process of the site, on this test's database.

    ``DATABASE``, ``OPTIONS``, ``HILO`` and ``OTHERS`` change its settings, what else
    is given are variables.
    """

    def make(**changes: Any) -> dict[str, str]:
        name = str(connections["default"].settings_dict["NAME"])
        hosted = {
            key: changes.pop(key)
            for key in ("DATABASE", "OPTIONS", "HILO", "OTHERS")
            if key in changes
        }
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.long.hosting.settings",
            "HILO_TEST_NAMES": json.dumps({"default": name}),
            "HILO_HOSTED": json.dumps(hosted),
            **changes,
        }

    return make


@pytest.fixture
def site(environment) -> Callable[..., str]:
    """Run a piece of Python in a process of the site; return what it printed."""

    def run(code: str, **changes) -> str:
        command = sys.executable, "-c", PREAMBLE + code
        return output_of(*command, env=environment(**changes))

    return run


@pytest.fixture
def serve(environment, tmp_path) -> Iterator[Callable[..., Server]]:
    """Start servers of the site; what is left of them is ended after the test."""
    servers: list[Server] = []

    def start(*command: str, **changes: Any) -> Server:
        log = tmp_path / f"server-{len(servers)}.log"
        server = Server(command, environment(**changes), log)
        servers.append(server)
        server.wait_until_up()
        return server

    yield start
    for server in servers:
        server.kill()


def program(name: str) -> str:
    """Return the path of a program, of this virtual environment before others."""
    own = str(Path(sys.executable).parent)
    found = shutil.which(name, path=own) or shutil.which(
        name, path=f"{os.environ['PATH']}:/usr/sbin"
    )
    if found is None:
        require(f"{name} is not installed")
    return found


def need(module: str) -> None:
    """Skip the test, or fail, where a module is not installed."""
    if importlib.util.find_spec(module) is None:
        require(f"{module} is not installed")
