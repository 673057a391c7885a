"""gunicorn's kinds of workers: what they give, hold, and return."""

import signal
import sys

import pytest

from tests.long.hosting.conftest import need
from tests.long.hosting.journal import UNDONE_WITH_THE_SAVE
from tests.long.hosting.servers import CLIENTS
from tests.long.hosting.sessions import counting

pytestmark = pytest.mark.django_db(transaction=True)

GUNICORN = (sys.executable, "-m", "gunicorn", "tests.long.hosting.wsgi")
LISTEN = ("--bind=127.0.0.1:PORT", "--workers=2")
PRELOAD = ("--preload",)
PATCHED_FIRST = ("--config=python:tests.long.hosting.gevent_first",)
# The most requests that one process works on at once.
SYNC, THREADS, GREENLETS = 1, 3, CLIENTS


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        pytest.param((), SYNC, id="sync"),
        pytest.param(PRELOAD, SYNC, id="sync-preload"),
        pytest.param(("--threads=3",), THREADS, id="gthread"),
        pytest.param(
            ("--threads=3", *PRELOAD),
            THREADS,
            id="gthread-preload",
            marks=pytest.mark.everywhere,
        ),
        pytest.param(("--worker-class=gevent",), GREENLETS, id="gevent"),
        pytest.param(
            ("--worker-class=gevent", *PRELOAD, *PATCHED_FIRST),
            GREENLETS,
            id="gevent-preload",
        ),
    ],
)
def test_workers(serve, options, at_once):
    if "--worker-class=gevent" in options:
        need("gevent")
    # A greenlet is a thread to Django: none would ever use what another one kept.
    entry = {"CONN_MAX_AGE": 0 if at_once == GREENLETS else None}
    with counting() as peak:
        server = serve(
            *(*GUNICORN, *LISTEN, *options), HILO_TEST_WARM="1", DATABASE=entry
        )
        server.ask_until_processes_overlap(203)
        # At its end the main thread, which has none, opens one to return the range.
        serving = peak.sessions
        assert server.stop() == 0, server.log

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
    assert serving <= 2 * (at_once + 1), "one more per process than Django's own"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="sync"),
        pytest.param(("--threads=3", *PRELOAD), id="gthread-preload"),
    ],
)
def test_workers_that_are_replaced(serve, options):
    """--max-requests: workers end and begin while others are at work."""
    with counting():
        server = serve(*GUNICORN, *LISTEN, *options, "--max-requests=40")
        server.ask(163)
        assert server.stop() == 0, server.log

    gaps = server.journal.check()
    assert len(server.journal.processes) > 2, "workers were replaced"
    assert gaps.at_the_end == 0, "the newest range went back"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_one_process_leaves_no_gap(serve, end):
    with counting():
        server = serve(*GUNICORN, "--bind=127.0.0.1:PORT", "--threads=3")
        server.ask(21)
        server.stop(end)

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
    if not UNDONE_WITH_THE_SAVE:  # there each rollback begins a new range
        assert gaps.inside == 0


def test_a_reload_by_sighup(serve):
    """Old workers end while new ones are at work."""
    with counting():
        server = serve(*GUNICORN, *LISTEN)
        server.ask_until_processes_overlap(83)
        server.process.send_signal(signal.SIGHUP)
        old = server.journal.processes
        server.ask_until(lambda: len(server.journal.processes - old) > 1, 8)
        assert server.stop() == 0, server.log

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
