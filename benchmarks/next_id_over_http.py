"""Requests per second of next-id, beside DRF views that only return a constant.

    python -m benchmarks.next_id_over_http

The constant that counts stands behind the same authentication (a token) and permission,
of an account that has this permission only; the other, open to everybody, shows what
those cost. All are asked by turns, under one gunicorn of two processes.
Uses ``HILO_TEST_POSTGRES`` (a URL), else SQLite.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import django

PROJECT = Path(__file__).resolve().parent.parent
PATHS = {
    "next-id": "/hilo/collections/orders/next-id/",
    "constant": "/constant/",
    "open": "/open/",
}
BODY = b'{"count": 1}'
GOAL = 0.8


def main() -> int:
    """Measure, print the figures, and return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each half round")
    parser.add_argument("--connections", type=int, default=4)
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    django.setup()
    with database() as names, gunicorn(names) as port:
        ask = Asker(port, token(), options.connections)
        for path in PATHS.values():
            ask.for_seconds(path, 2.0)  # warm
        rounds = [measure(ask, n, options.seconds) for n in range(options.rounds)]
    ratio = report(rounds)
    return 0 if ratio >= GOAL else 1


def measure(ask: Asker, n: int, seconds: float) -> dict[str, float]:
    """Ask all, in turned order in every second round; return requests per second."""
    order = sorted(PATHS, reverse=bool(n % 2))
    return {name: ask.for_seconds(PATHS[name], seconds) for name in order}


def report(rounds: list[dict[str, float]]) -> float:
    """Print what was measured, and return the median ratio."""
    from django.db import connection

    ratios = [each["next-id"] / each["constant"] for each in rounds]
    print(f"{connection.vendor}, {len(rounds)} rounds:  median (least to most)")
    for name in PATHS:
        line([each[name] for each in rounds], name, ".0f", "requests/s")
    line(ratios, "ratio", ".3f", f"goal: {GOAL}")
    return statistics.median(ratios)


def line(figures: list[float], name: str, form: str, unit: str) -> None:
    middle = statistics.median(figures)
    spread = f"({min(figures):{form}} to {max(figures):{form}})"
    print(f"{name:>10} {middle:{form}} {spread} {unit}")


@contextmanager
def database() -> Iterator[dict[str, str]]:
    """Make a database, and drop it at the end."""
    from django.db import connection

    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield {"default": str(connection.settings_dict["NAME"])}
    finally:
        connection.creation.destroy_test_db("", verbosity=0)


@contextmanager
def gunicorn(names: dict[str, str]) -> Iterator[int]:
    """Serve until the block ends; give the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "gunicorn", "benchmarks.wsgi", f"--bind=127.0.0.1:{port}",
        "--workers=2", "--threads=2", "--keep-alive=60", "--log-level=warning",
    ]  # fmt: skip
    environment = {**os.environ, "HILO_TEST_NAMES": json.dumps(names)}
    server = subprocess.Popen(command, cwd=PROJECT, env=environment)
    try:
        yield port
    finally:
        server.terminate()
        server.wait(30)


def token() -> str:
    """Make an account that may take ids, and return its token."""
    from django.contrib.auth.models import Permission, User
    from rest_framework.authtoken.models import Token

    user = User.objects.create_user("program")
    user.user_permissions.add(Permission.objects.get(codename="take_hilo_ids"))
    return Token.objects.create(user=user).key


class Asker:
    """Asks over some connections that are kept open, as cheaply as Python can."""

    def __init__(self, port: int, token: str, connections: int) -> None:
        self._port = port
        self._token = token
        self._connections = connections

    def for_seconds(self, path: str, seconds: float) -> float:
        """Ask as fast as answers come; return requests per second."""
        request = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Token {self._token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(BODY)}\r\n\r\n"
        ).encode() + BODY
        start = time.monotonic()
        with ThreadPoolExecutor(self._connections) as executor:
            counts = executor.map(
                lambda _: self._ask(request, start + seconds), range(self._connections)
            )
            asked = sum(counts)
        return asked / (time.monotonic() - start)

    def _ask(self, request: bytes, until: float) -> int:
        asked = 0
        with self._connect() as connection:
            while time.monotonic() < until:
                connection.sendall(request)
                read_answer(connection)
                asked += 1
        return asked

    def _connect(self) -> socket.socket:
        give_up = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._port), timeout=30)
            except OSError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)  # gunicorn is still starting


def read_answer(connection: socket.socket) -> None:
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 201"):
        raise RuntimeError(answer.decode())
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += received(connection)


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65_536)
    if not data:
        raise RuntimeError("The server closed the connection.")
    return data


if __name__ == "__main__":
    sys.exit(main())
