"""Ids over HTTP from two servers at once, each with a process of its own."""

from __future__ import annotations

import base64
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import groupby

import pytest
from django.contrib.auth.models import User

from tests.conftest import child_environment
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.servers import gunicorn

pytestmark = pytest.mark.django_db(transaction=True)

SERVERS, CLIENTS, ROUNDS, REQUESTS, COUNT = 2, 4, 20, 5, 5


def ask(port: int, requests: int) -> list[tuple[float, int, list[str]]]:
    """Take ids; return them with the time of each answer and the server's port."""
    credentials = base64.b64encode(b"boss:secret").decode()
    headers = {
        "Authorization": f"Basic {credentials}",
        "Content-Type": "application/json",
    }
    taken = []
    for _ in range(requests):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
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


@pytest.mark.skipif(CHOSEN == "sqlite", reason="one writer at a time")
def test_no_id_twice():
    User.objects.create_superuser("boss", password="secret")
    application = "django.core.wsgi:get_wsgi_application()"
    with ExitStack() as servers, ThreadPoolExecutor(SERVERS * CLIENTS) as executor:
        ports = [
            servers.enter_context(gunicorn(application, child_environment()))
            for _ in range(SERVERS)
        ]
        # All begin a round together, so that no server is through before another.
        answers = [
            answers_of_one
            for _ in range(ROUNDS)
            for answers_of_one in executor.map(
                ask, ports * CLIENTS, [REQUESTS] * SERVERS * CLIENTS
            )
        ]
    taken = sorted(answer for answers_of_one in answers for answer in answers_of_one)

    ids = [id for _, _, some in taken for id in some]
    assert len(ids) == SERVERS * CLIENTS * ROUNDS * REQUESTS * COUNT
    assert len(set(ids)) == len(ids)
    turns = [port for port, _ in groupby(port for _, port, _ in taken)]
    assert len(turns) > 10, "the servers took ids one after the other, not at once"
