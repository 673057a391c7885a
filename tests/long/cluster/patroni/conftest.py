import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.long.cluster.evidence import collect
from tests.long.cluster.load import migrate, running
from tests.long.cluster.patroni.cluster import Cluster
from tests.long.cluster.patroni.load import PatroniLoad
from tests.long.cluster.patroni.report import HEAD, Fault, Line, assert_promises
from tests.support.programs import require

_table: list[Line] = []


def pytest_terminal_summary(terminalreporter) -> None:
    if _table:
        terminalreporter.section("Patroni")
        for line in (HEAD, *_table):
            terminalreporter.line(str(line))


@pytest.fixture(
    scope="module", params=[False, True], ids=["asynchronous", "synchronous"]
)
def running_cluster(request, folder) -> Iterator[Cluster]:
    if lacks := Cluster.missing():
        require(f"no Patroni without {', '.join(lacks)}")
    place = folder / f"patroni-{request.param}"
    place.mkdir()
    place.chmod(0o755)
    with running(Cluster(place, request.param)) as cluster:
        migrate(cluster.environment(by_proxy=False))
        yield cluster


@pytest.fixture
def cluster(running_cluster) -> Iterator[Cluster]:
    """A primary and two standbys; what a test breaks is repaired after it."""
    yield running_cluster
    running_cluster.repair()


@pytest.fixture(scope="module")
def load(running_cluster, tmp_path_factory) -> Iterator[PatroniLoad]:
    """The workers live through all faults."""
    load = PatroniLoad(running_cluster, tmp_path_factory.mktemp("load"))
    try:
        load.start_all()
        yield load
        load.end()
    finally:
        load.end_by_force()


@pytest.fixture(scope="module")
def faults(running_cluster) -> list[Fault]:
    """Those of this mode, up to now."""
    return []


@pytest.fixture
def fault(
    cluster, load, faults, capsys
) -> Callable[[str], AbstractContextManager[Fault]]:
    """Judge what the workers did while the block breaks something, and after it."""

    @contextmanager
    def fault(title: str) -> Iterator[Fault]:
        since = time.monotonic_ns()
        load.wait_for_progress()
        faults.append(fault := Fault(title, cluster))
        yield fault
        load.wait_for_progress()
        cluster.repair()
        load.wait_for_progress()
        with load.at_rest():
            everything, of_this = collect(load.folder), collect(load.folder, since)
            before = sum(each.twice for each in faults)
            _table.append(line := fault.end(of_this, everything, before))
            with capsys.disabled():
                print(f"\n{line}")
            assert_promises(cluster, everything, faults)

    return fault
