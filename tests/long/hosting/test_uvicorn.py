"""uvicorn: async views, in one process and in several that it spawns."""

import re
import signal
import sys

import pytest

from tests.long.hosting.conftest import need
from tests.long.hosting.journal import UNDONE_WITH_THE_SAVE
from tests.long.hosting.servers import ASYNC, CLIENTS
from tests.long.hosting.sessions import counting
from tests.support.commands import PROJECT
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

UVICORN = (
    *(sys.executable, "-m", "uvicorn"),
    *("--host=127.0.0.1", "--port=PORT", "--no-access-log"),
    f"--timeout-worker-healthcheck={PATIENCE}",  # else who says nothing for 5 s dies
)
DOCS = (PROJECT / "docs/how-to/hosting.md").read_text()


@pytest.fixture
def uvicorn(serve, tmp_path):
    need("uvicorn")
    (code,) = re.findall(r"```python\n# asgi.py\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "asgi_of_the_docs.py").write_text(code)

    def start(*options: str, **changes):
        return serve(*UVICORN, f"--app-dir={tmp_path}", *options, **changes)

    return start


@pytest.mark.parametrize(
    ("application", "end"),
    [
        pytest.param("tests.long.hosting.asgi", signal.SIGINT, id="ctrl-c"),
        pytest.param("asgi_of_the_docs", signal.SIGTERM, id="lifespan"),
    ],
)
def test_one_process(uvicorn, application, end):
    with counting() as peak:
        server = uvicorn(f"{application}:application")
        server.ask(203, ASYNC)
        server.stop(end)

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
    if not UNDONE_WITH_THE_SAVE:  # there each rollback begins a new range
        assert gaps.inside == 0
    assert peak.sessions <= CLIENTS + 1


def test_several_processes(uvicorn):
    with counting() as peak:
        server = uvicorn("asgi_of_the_docs:application", "--workers=2")
        server.ask_until_processes_overlap(203, ASYNC)
        server.stop()

    gaps = server.journal.check()
    assert gaps.at_the_end == 0, "the newest range went back"
    assert peak.sessions <= 2 * (CLIENTS + 1)


def test_sigterm_without_lifespan(uvicorn):
    """uvicorn ends by the signal itself, and atexit is not run."""
    with counting():
        server = uvicorn("tests.long.hosting.asgi:application")
        server.ask(3, ASYNC)
        assert server.stop() == -signal.SIGTERM

    gaps = server.journal.check()
    assert gaps.at_the_end == 8 - 3
