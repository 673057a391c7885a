"""Projects of their own: users with HiLo keys, and caches of queries."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.commands import run
from tests.support.patience import PATIENCE, wait_until
from tests.support.ports import free_port
from tests.support.programs import require
from tests.support.servers import answers, ending_with_us


def run_project(name: str, **environment: str) -> None:
    settings = f"--ds=tests.long.fellows.{name}.settings"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    folder = f"tests/long/fellows/{name}"
    done = run(*command, settings, folder, env={**os.environ, **environment})
    print(done.stdout)


@pytest.mark.parametrize("keys", ["text", "integer"])
def test_users_with_keys(keys):
    run_project("portal", HILO_TEST_KEYS=keys)


def test_cachalot():
    run_project("caches", HILO_TEST_CACHE="cachalot")


@pytest.fixture
def redis(tmp_path) -> Iterator[str]:
    if shutil.which("redis-server") is None:
        require("There is no redis-server, of Debian's package of this name")
    port = free_port()
    options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "")
    server = subprocess.Popen(
        ending_with_us("redis-server", *options),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(server, port))
        yield f"redis://127.0.0.1:{port}/1"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def test_cacheops(redis):
    run_project("caches", HILO_TEST_CACHE="cacheops", HILO_TEST_REDIS=redis)
