"""Servers on free ports of this machine, for tests that talk to a real one."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import warm
from tests.support.commands import PROJECT
from tests.support.patience import PATIENCE, wait_until
from tests.support.ports import free_port
from tests.support.programs import require

# It kills a worker that gives no sign of life for 30 s, or ends for longer than that.
PATIENT_GUNICORN = {
    "GUNICORN_CMD_ARGS": f"--timeout={PATIENCE} --graceful-timeout={PATIENCE}"
}


def ending_with_us(*command: str | Path) -> list[str | Path]:
    """Return a command that is ended when this process ends, however that ends."""
    if shutil.which("setpriv") is None:
        require("no server without setpriv, of util-linux")
    # Where the tests are a background job, Ctrl-C would be ignored.
    listening = ("env", "--default-signal=INT,QUIT")
    return ["setpriv", "--pdeathsig=TERM", *listening, *command]


@contextmanager
def gunicorn(
    application: str,
    environment: Mapping[str, str],
    *options: str,
    log: Path = Path(os.devnull),
) -> Iterator[int]:
    """Serve until the block ends; give the port.

    Of one process with 4 threads, unless the options say otherwise.
    """
    port = free_port()
    with log.open("w") as output:
        server = subprocess.Popen(
            ending_with_us(
                *(sys.executable, "-m", "gunicorn", application),
                *(f"--bind=127.0.0.1:{port}", *(options or ["--threads=4"])),
            ),
            cwd=PROJECT,
            env={**environment, **PATIENT_GUNICORN},
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: answers(server, port))
        yield port
    finally:
        server.terminate()
        server.wait(2 * PATIENCE)


@contextmanager
def runserver(folder: Path, environment: Mapping[str, str]) -> Iterator[int]:
    """Serve the project in a folder until the block ends; give the port."""
    port = free_port()
    server = warm.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(server, port))
        yield port
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)


def answers(server: subprocess.Popen[bytes] | warm.Popen, port: int) -> bool:
    """Tell whether it takes connections; it must not have ended."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        assert server.poll() is None, f"{server.args} ended with {server.returncode}."
        return False
    return True
