"""A primary is killed under load, and its replica promoted by the run-book."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, collect
from tests.long.cluster.load import Load, running
from tests.long.cluster.mariadb.replicated import Replica, Replicated
from tests.support.own_server import missing_programs
from tests.support.programs import require

WORKERS, NEW = 4, 2
LABELS = "records.Order", "records.Order", "numbers.Item"


@pytest.fixture
def servers(folder) -> Iterator[Replicated]:
    if lacks := missing_programs("setpriv", *Replica.programs):
        require(f"no replica without {', '.join(lacks)}")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        Path(name).chmod(0o755)
        with running(Replicated(Path(name))) as servers:
            yield servers


@pytest.fixture
def load(tmp_path) -> Iterator[Load]:
    load = Load(tmp_path)
    yield load
    load.end_by_force()


@pytest.mark.parametrize("answers", [True, False])
def test_no_id_comes_twice_after_sync(servers, load, capsys, answers):
    """The replica has received everything, and has applied a part of it.

    Or it stands still, and commits wait for it.
    """
    first = load.start(WORKERS, servers.environment(), *LABELS)
    load.wait_for_ids()
    servers.replica.execute("STOP SLAVE SQL_THREAD")
    load.wait_for_ids(count=50)
    if not answers:
        servers.replica.send(SIGSTOP)
        waits = servers.primary.status
        servers.primary.wait_for(lambda: waits("wait_sessions") > 0, "waiting")
    servers.primary.kill()
    servers.replica.send(SIGCONT)
    # Too early: it is read-only.
    servers.route.lead_to(servers.replica)
    load.wait_for("no id", first)
    refused_at = time.monotonic_ns()
    load.wait_for("no id", first)
    servers.replica.execute("START SLAVE SQL_THREAD")
    promoting_at = time.monotonic_ns()
    servers.replica.promote()
    new = load.start(NEW, servers.environment(), *LABELS)
    servers.third.follow(servers.replica)
    load.wait_for_ids([*first, *new])
    followed_at = time.monotonic_ns()
    load.wait_for_ids()
    load.wait_for("stood", [*first, *new], 20)
    load.end()

    everything = collect(load.folder)
    with capsys.disabled():
        print(f"\nAFTER_SYNC, replica answers {answers}: {everything}")
    everything.assert_nothing_twice()
    refused = collect(load.folder, refused_at, promoting_at)
    assert [span for spans in refused.spans.values() for span in spans] == []
    after = collect(load.folder, followed_at)
    assert after.seats() == {*first, *new}
    assert everything.changes("orders/A") >= FEWEST_CHANGES


@pytest.mark.parametrize("mistake", ["asynchronous", "both threads stopped"])
def test_ids_come_twice_by_mistakes(servers, load, capsys, mistake):
    """So the load of the other test would show it.

    A replica by GTID whose threads have both stopped deletes what it has not applied.
    """
    load.start(WORKERS, servers.environment(), *LABELS)
    load.wait_for_ids()
    if mistake == "asynchronous":
        servers.primary.execute("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        servers.replica.execute("STOP SLAVE")
    servers.replica.execute("STOP SLAVE SQL_THREAD")
    load.wait_for_ids(count=50)
    # Or who has seen most might be the first to reserve, and heal the counter.
    load.kill()
    servers.replica.execute("STOP SLAVE")
    servers.primary.kill()
    servers.replica.execute("START SLAVE")
    servers.replica.promote()
    servers.route.lead_to(servers.replica)
    servers.third.follow(servers.replica)
    load.start(NEW, servers.environment(), *LABELS)
    load.wait_for_ids()
    load.end()
    everything = collect(load.folder)
    with capsys.disabled():
        print(f"\n{mistake}: {everything}")
    assert everything.repeated()
    assert everything.failures == []
