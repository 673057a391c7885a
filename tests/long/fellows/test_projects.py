"""Projects of their own: users with HiLo keys, caches of queries, older versions."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.commands import PROJECT, run
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


def test_packages_apart(tmp_path):
    """They need older versions of what their fellows need, so these come first."""
    pins = (PROJECT / "requirements/apart.txt").read_text()
    file, packages = tmp_path / "requirements.txt", str(tmp_path / "packages")
    file.write_text(re.sub(r"^django==.*\n( .*\n)*", "", pins, flags=re.MULTILINE))
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
    run(*install, "--target", packages, "-r", file)
    run_project("apart", HILO_TEST_APART="1", PYTHONPATH=packages)


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
