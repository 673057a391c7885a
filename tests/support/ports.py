"""Ports for servers of tests, which no other process is given before they listen."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Under the ports that the system gives to clients: one of those could sit on the port
# of a server that is down, even by connecting to itself.
_PORTS = range(15000, 32000)
_FOLDER = Path(tempfile.gettempdir()) / f"django-hilo-ports-{os.getuid()}"
# Locked while this process lives, so that those beside it take others.
_held: list[int] = []


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on, nor is about to."""
    _FOLDER.mkdir(exist_ok=True)
    ports: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(ports) == count:
            return ports
        if _is_free(port) and _lock(port):
            ports.append(port)
    raise RuntimeError(f"There are no {count} free ports in {_PORTS}.")


def free_port() -> int:
    """Return a port of this machine that nobody listens on, nor is about to."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _lock(port: int) -> bool:
    file = os.open(_FOLDER / str(port), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    _held.append(file)
    return True
