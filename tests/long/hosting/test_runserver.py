"""runserver: each reload is the end of a process."""

import os
import signal
import sys
import time

import pytest

from tests.long.hosting.journal import UNDONE_WITH_THE_SAVE
from tests.long.hosting.servers import CLIENTS
from tests.long.hosting.sessions import counting
from tests.support.commands import PROJECT
from tests.support.patience import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

RUNSERVER = (sys.executable, "-m", "django", "runserver", "127.0.0.1:PORT")

# What changed is what differs from what it saw first.
URLS = """
from django.utils.autoreload import StatReloader
from tests.long.hosting.urls import urlpatterns
look = StatReloader.snapshot_files
def look_and_tell(self):
    yield from look(self)
    print("All files were seen.", flush=True)
StatReloader.snapshot_files = look_and_tell
"""


def test_a_reload_returns_the_range(serve, tmp_path):
    urls = tmp_path / "urls_of_this_test.py"
    urls.write_text(URLS)
    with counting() as peak:
        server = serve(
            *RUNSERVER,
            PYTHONPATH=f"{tmp_path}{os.pathsep}{PROJECT}",
            HILO_TEST_URLS=urls.stem,
        )
        before = server.wait_until_up()
        server.ask(21)
        wait_until(lambda: "All files were seen" in server.log, lambda: server.log)
        future = time.time() + 60
        os.utime(urls, (future, future))
        wait_until(lambda: server.wait_until_up() != before, lambda: server.log)
        server.ask(21)
        server.stop_all(signal.SIGINT)

    gaps = server.journal.check()
    assert len(server.journal.processes) == 2
    assert gaps.at_the_end == 0, "the newest range went back"
    assert peak.sessions <= CLIENTS + 1
    if not UNDONE_WITH_THE_SAVE:  # there each rollback begins a new range
        assert gaps.inside == 0, "the first process's range went back as well"
