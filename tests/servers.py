"""gunicorn on a free port of this machine, for tests that talk to a real server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import PROJECT


def ending_with_us(*command: str | Path) -> list[str | Path]:
    """Return a command that is ended when this process ends, however that ends."""
    if shutil.which("setpriv") is None:
        sentence = "no server without setpriv, of util-linux"
        if os.environ.get("HILO_TEST_REQUIRE") == "1":
            pytest.fail(f"{sentence}, and HILO_TEST_REQUIRE=1")
        pytest.skip(sentence)
    return ["setpriv", "--pdeathsig=TERM", *command]


@contextmanager
def gunicorn(application: str, environment: Mapping[str, str]) -> Iterator[int]:
    """Serve until the block ends; give the port of one process with 4 threads."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ending_with_us(
            *(sys.executable, "-m", "gunicorn", application),
            *(f"--bind=127.0.0.1:{port}", "--threads=4"),
        ),
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(port: int) -> None:
    give_up = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < give_up, "gunicorn does not answer"
            time.sleep(0.05)  # it is still starting
