"""uWSGI forks in C: what its options change for a process that holds ranges."""

import sys
from collections.abc import Callable

import pytest

from tests.long.hosting.conftest import program
from tests.long.hosting.servers import Server
from tests.long.hosting.sessions import counting
from tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

UWSGI = (
    *("--http-socket=127.0.0.1:PORT", "--module=tests.long.hosting.wsgi", "--need-app"),
    *(f"--home={sys.prefix}", "--processes=2", "--disable-logging"),
    # It hangs up on a client that says nothing for 4 s, and kills who ends for 60 s.
    *(f"--socket-timeout={PATIENCE}", f"--worker-reload-mercy={PATIENCE}"),
    f"--reload-mercy={PATIENCE}",
)
# By itself uWSGI takes SIGTERM for a reload.
MASTER = ("--master", "--die-on-term")
# --die-on-term ends a busy worker without running atexit; this one waits for it.
GRACEFUL = (
    *("--master", "--hook-master-start=unix_signal:15 gracefully_kill_them_all"),
)
HOOKS = "--py-call-uwsgi-fork-hooks"


def all_are_made(log: str) -> bool:
    return log.count("Seeya!") <= log.count("Respawned uWSGI worker")


@pytest.fixture
def uwsgi(serve) -> Callable[..., Server]:
    def start(*options: str, **changes) -> Server:
        return serve(program("uwsgi"), *UWSGI, *options, **changes)

    return start


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        pytest.param(GRACEFUL, 1, id="graceful"),
        pytest.param((*GRACEFUL, HOOKS, "--threads=3"), 3, id="graceful-threads"),
        pytest.param((*MASTER, "--threads=3"), 3, id="threads"),
        pytest.param((*MASTER, "--py-call-osafterfork"), 1, id="osafterfork"),
        pytest.param((*MASTER, HOOKS), 1, id="fork-hooks"),
        pytest.param((*MASTER, "--lazy-apps"), 1, id="lazy-apps"),
    ],
)
def test_workers(uwsgi, options, at_once):
    """The master loads the site, holds a range and keeps its connection."""
    with counting() as peak:
        server = uwsgi(*options, HILO_TEST_WARM="1", DATABASE={"CONN_MAX_AGE": None})
        server.ask_until_processes_overlap(203)
        serving = peak.sessions
        server.stop()

    gaps = server.journal.check()
    # A worker that was busy when a stop came that waits for none returns nothing.
    assert gaps.at_the_end <= (0 if "--die-on-term" not in options else 7)
    # A fork without hooks leaves the master's own open.
    assert serving <= 2 * (at_once + 1) + 1, "one more per process than Django's"


def test_workers_that_are_replaced(uwsgi):
    with counting():
        server = uwsgi(
            *(*MASTER, "--max-requests=40", "--min-worker-lifetime=0"),
            HILO_TEST_WARM="1",
        )
        server.ask_until_processes_overlap(123)
        # uWSGI forgets to stop a worker that it is about to make.
        wait_until(lambda: all_are_made(server.log), lambda: server.log)
        server.stop()

    gaps = server.journal.check()
    assert len(server.journal.processes) > 2, "workers were replaced"
    assert gaps.at_the_end <= 7


def test_workers_without_a_master(uwsgi):
    """Nobody stops them but who signals each of them."""
    with counting():
        server = uwsgi(HILO_TEST_WARM="1", DATABASE={"CONN_MAX_AGE": None})
        server.ask_until_processes_overlap(63)
        server.stop_all()

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
