import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import cycle, repeat

import pytest

from tests.conftest import PROJECT
from tests.long.cluster.evidence import collect
from tests.long.cluster.galera.cluster import Galera
from tests.long.cluster.group_replication.group import Group
from tests.long.cluster.primaries.cluster import Cluster, Primary, in_a_folder
from tests.long.cluster.primaries.load import (
    SHARED,
    WORKERS_PER_NODE,
    ClusterLoad,
    environment_on,
)
from tests.support.patience import LONGEST, PATIENCE
from tests.support.programs import require


@pytest.fixture(scope="session", params=[Galera, Group])
def running_cluster(request) -> Iterator[Cluster]:
    if lacks := request.param.missing():
        require(f"no {request.param.__name__} without {', '.join(lacks)}")
    with in_a_folder(request.param) as cluster:
        python_on(
            cluster.nodes[0], "-m", "django", "migrate", "--run-syncdb", "--verbosity=0"
        )
        yield cluster


@pytest.fixture
def cluster(running_cluster) -> Iterator[Cluster]:
    """Three synced nodes; what a test breaks is repaired after it."""
    yield running_cluster
    running_cluster.repair()


@pytest.fixture
def no_eviction(cluster) -> Iterator[None]:
    """Let no node take another for lost that is slow."""
    for node in cluster.nodes:
        node.evict(late=True)
    yield
    for node in cluster.nodes:
        node.evict(late=False)


@pytest.fixture
def python() -> Callable[..., str]:
    """Run Python code in a Django process on a node; return what it printed."""

    def run(node: Primary, code: str, *arguments: str) -> str:
        return python_on(node, "-c", PREAMBLE + code, *arguments)

    return run


@pytest.fixture
def python_everywhere(cluster) -> Callable[[str], list[str]]:
    """Run Python code in two processes on each node at the same time.

    Returns what each of them printed.
    """

    def run(code: str) -> list[str]:
        nodes = [node for node in cluster.nodes for _ in range(WORKERS_PER_NODE)]
        whole = repeat(PREAMBLE + code)
        with ThreadPoolExecutor(len(nodes)) as threads:
            return list(threads.map(python_on, nodes, repeat("-c"), whole))

    return run


PREAMBLE = "import django; django.setup()\nfrom tests.long.cluster.primaries.scripts import *\n"


def python_on(node: Primary, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=PROJECT,
        env={**environment_on(node, PATIENCE), "SYNC": node.sync},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def running_load(running_cluster, tmp_path_factory) -> Iterator[ClusterLoad]:
    """The workers live as long as the faults of this module come."""
    load = ClusterLoad(running_cluster, tmp_path_factory.mktemp("load"))
    try:
        load.start_all()
        yield load
        load.end()
    finally:
        load.end_by_force()


@pytest.fixture
def load(cluster, running_load) -> ClusterLoad:
    return running_load


@pytest.fixture
def fault(load, capsys) -> Callable[[str, list[Primary]], AbstractContextManager[None]]:
    """Judge what the workers did while a block of faults ran, and since their start."""

    @contextmanager
    def judge(title: str, faulty: list[Primary]) -> Iterator[None]:
        since = time.monotonic_ns()
        load.wait_for_progress()
        yield
        load.wait_for_progress()
        give_up_at = time.monotonic() + PATIENCE
        # A busy machine lets each go on for long before another's turn comes.
        while not judged(title, faulty, since):
            assert time.monotonic() < give_up_at, "They do not draw by turns."
            load.wait_for_progress()

    def judged(title: str, faulty: list[Primary], since: int) -> bool:
        with load.at_rest():
            all_of_it, of_this = collect(load.folder), collect(load.folder, since)
            with capsys.disabled():
                print(f"\n{title}: {of_this}")
            all_of_it.assert_nothing_twice()
            load.assert_known_errors(of_this)
            load.assert_no_hang(of_this, faulty)
            load.assert_nodes_agree(all_of_it)
            return of_this.drew_by_turns(SHARED, load.seats_of(load.cluster.nodes))

    return judge


@pytest.fixture(scope="session")
def turns(running_cluster) -> Iterator[Primary]:
    """The nodes in turn, without end."""
    return cycle(running_cluster.nodes)


@pytest.fixture
def victims(turns) -> Iterator[Primary]:
    """Give one node; another, and another, while this test's share of a long run lasts.

    ``HILO_CLUSTER_SECONDS`` is the length of all faults together.
    """
    seconds = float(os.environ.get("HILO_CLUSTER_SECONDS") or 0) / TESTS_WITH_VICTIMS
    return _while_time_lasts(turns, seconds)


TESTS_WITH_VICTIMS = 5


def _while_time_lasts(nodes: Iterator[Primary], seconds: float) -> Iterator[Primary]:
    end = time.monotonic() + seconds
    yield next(nodes)
    while time.monotonic() < end:
        yield next(nodes)
