"""CONN_MAX_AGE is of Django's connection; our own ends with the request."""

import sys

import pytest

from tests.long.hosting.sessions import counting, sessions, wait_for_sessions
from tests.support.databases import CHOSEN
from tests.support.patience import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN == "sqlite", reason="a file has no sessions"),
]

GUNICORN = (
    *(sys.executable, "-m", "gunicorn", "tests.long.hosting.wsgi"),
    "--bind=127.0.0.1:PORT",
)
# Of its one process at a time: Django's connection, and our own in a request.
BOTH = 2


@pytest.mark.parametrize(("age", "kept"), [(0, 0), (60, 1), (None, 1)])
def test_between_requests(serve, age, kept):
    with counting() as peak:
        before = sessions()
        server = serve(*GUNICORN, DATABASE=_entry(age))
        server.ask(83)
        wait_for_sessions(before + kept)
        assert server.stop() == 0, server.log
    assert server.journal.check() == (0, 0)
    assert peak.sessions <= BOTH


def test_a_request_closes_what_is_too_old(serve):
    """As Django's own: neither a view nor an id has to ask for the database."""
    with counting():
        before = sessions()
        server = serve(*GUNICORN, DATABASE=_entry(1))
        server.ask(8)
        wait_for_sessions(before + 1)

        def none_is_left() -> bool:
            server.fetch("without-database")
            return sessions() <= before

        wait_until(none_is_left, sessions, pause=0.2)  # one second is their age
        server.stop()


def _entry(age: int | None) -> dict[str, object]:
    return {"CONN_MAX_AGE": age, "ATOMIC_REQUESTS": True}
