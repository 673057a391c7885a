"""Ids over HTTP from two servers at once, each with a process of its own."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import pytest
from django.contrib.auth.models import User

from tests.conftest import PROJECT, child_environment
from tests.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

SERVERS, CLIENTS, REQUESTS, COUNT = 2, 4, 100, 5


@pytest.fixture
def serve() -> Iterator[Callable[[], int]]:
    """Start servers of one process each, and stop them by their own ids."""
    started = []

    def start() -> int:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            sys.executable, "-m", "gunicorn", "django.core.wsgi:get_wsgi_application()",
            f"--bind=127.0.0.1:{port}", "--threads=4",
        ]  # fmt: skip
        started.append(
            subprocess.Popen(
                command,
                cwd=PROJECT,
                env=child_environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return port

    yield start
    for process in started:
        process.terminate()
    for process in started:
        process.wait(30)


def ask(port: int, requests: int) -> list[tuple[float, int, list[str]]]:
    """Take ids; return them with the time of each answer and the server's port."""
    credentials = base64.b64encode(b"boss:secret").decode()
    headers = {
        "Authorization": f"Basic {credentials}",
        "Content-Type": "application/json",
    }
    taken = []
    for _ in range(requests):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(
            "POST",
            "/hilo/collections/orders/next-id/",
            json.dumps({"count": COUNT}),
            headers,
        )
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status == 201, body
        taken.append((time.monotonic(), port, json.loads(body)["ids"]))
    return taken


def wait_for(port: int) -> None:
    give_up = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < give_up, "gunicorn does not answer"
            time.sleep(0.05)  # it is still starting


@pytest.mark.skipif(CHOSEN == "sqlite", reason="one writer at a time")
def test_no_id_twice(serve):
    User.objects.create_superuser("boss", password="secret")
    ports = [serve() for _ in range(SERVERS)]
    for port in ports:
        wait_for(port)
    with ThreadPoolExecutor(SERVERS * CLIENTS) as executor:
        answers = list(
            executor.map(ask, ports * CLIENTS, [REQUESTS] * SERVERS * CLIENTS)
        )
    taken = sorted(answer for answers_of_one in answers for answer in answers_of_one)

    ids = [id for _, _, some in taken for id in some]
    assert len(ids) == SERVERS * CLIENTS * REQUESTS * COUNT
    assert len(set(ids)) == len(ids)
    turns = [port for port, _ in groupby(port for _, port, _ in taken)]
    assert len(turns) > 10, "the servers took ids one after the other, not at once"
