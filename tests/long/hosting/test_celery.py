"""Celery's prefork pool: its children end without running atexit."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.long.hosting.conftest import need
from tests.long.hosting.journal import Answer, Journal
from tests.long.hosting.sessions import counting
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.patience import LONGEST, PATIENCE, wait_until
from tests.support.servers import ending_with_us

pytestmark = pytest.mark.django_db(transaction=True)

WORKER = (
    *(sys.executable, "-m", "celery", "-A", "tests.long.hosting.celery_app", "worker"),
    *("--pool=prefork", "--concurrency=2"),
    *("--max-tasks-per-child=20", "--without-gossip", "--without-mingle"),
    "--without-heartbeat",
)
SEND = """
import sys, tempfile
from os import environ
from pathlib import Path
with tempfile.TemporaryDirectory(dir=Path(sys.argv[2]).parent) as outbox:
    environ["HILO_TEST_OUTBOX"] = outbox
    from tests.long.hosting.celery_app import create_order, folder
    for _ in range(int(sys.argv[1])): create_order.delay(sys.argv[2])
    for message in Path(outbox).iterdir(): message.rename(Path(folder, message.name))
"""


def answers(journal: Path) -> list[Answer]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [
        Answer(key, True, *map(int, numbers))
        for key, *numbers in (line.split() for line in lines)
    ]


def ended(folder: Path) -> list[str]:
    """Return the children that came to the end of their shutdown."""
    file = folder / "journal.txt.ended"
    return file.read_text().split() if file.exists() else []


def create_orders(
    journal: Path, variables: dict[str, str], longest_end: float
) -> list[Answer]:
    """Start a worker, send it tasks until its children met, stop it."""
    with (journal.parent / "log").open("wb") as log:
        worker = subprocess.Popen(
            ending_with_us(*WORKER), cwd=PROJECT, env=variables, stdout=log, stderr=log
        )
        try:
            wanted = 0
            give_up = time.monotonic() + LONGEST
            while not Journal(answers(journal)).overlapped():
                assert time.monotonic() < give_up, "one child does all the work"
                wanted += 60
                subprocess.run(
                    [sys.executable, "-c", SEND, "60", str(journal)],
                    cwd=PROJECT,
                    env=variables,
                    check=True,
                    timeout=PATIENCE,
                )
                wait_until(
                    lambda wanted=wanted: len(answers(journal)) >= wanted,
                    Path(log.name).read_text,
                )
            worker.terminate()
            with suppress(subprocess.TimeoutExpired):  # Celery 5.7 may overhear it
                assert worker.wait(longest_end) == 0
        finally:
            worker.kill()
            worker.wait(PATIENCE)
    return answers(journal)


@pytest.mark.everywhere
def test_prefork(environment, tmp_path):
    """Children are replaced on the way, and ended with the worker."""
    need("celery")
    told = Journal()
    with counting() as peak:
        for attempt in range(1, 9):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            variables = environment(HILO_TEST_BROKER=str(folder), C_FORCE_ROOT="1")
            # Longer each time, for who is slow and does not overhear it.
            told += create_orders(folder / "journal.txt", variables, 20 * attempt)
            told.check()
            # Celery 5.7 kills children that are about to end, now and then.
            if str(told.newest.process) in ended(folder):
                break
        else:
            pytest.fail("Celery let no child end by itself")

    assert told.check().at_the_end == 0, (folder / "log").read_text()
    assert len(told.processes) > 2, "children were replaced"
    if CHOSEN == "postgres":
        assert peak.sessions <= 2 * (1 + 1), "one more per process than Django's own"
