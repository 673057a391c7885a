import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, repeat
from typing import Any

import pytest

from tests.long.cluster.evidence import collect
from tests.long.cluster.galera.cluster import Galera
from tests.long.cluster.group_replication.group import Group
from tests.long.cluster.load import SECONDS, migrate, run_python, running
from tests.long.cluster.primaries.cluster import Cluster, Primary
from tests.long.cluster.primaries.load import (
    SHARED,
    WORKERS_PER_NODE,
    ClusterLoad,
    environment_on,
)
from tests.support.patience import PATIENCE
from tests.support.programs import require


@pytest.fixture(scope="session", params=[Galera, Group])
def running_cluster(request, folder) -> Iterator[Cluster]:
    if lacks := request.param.missing():
        require(f"no {request.param.__name__} without {', '.join(lacks)}")
    with running(request.param(folder)) as cluster:
        migrate(environment_on(cluster.nodes[0], PATIENCE))
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
    return python_on


@pytest.fixture
def python_everywhere(cluster) -> Callable[[str], list[str]]:
    """Run Python code in two processes on each node at the same time.

    Returns what each of them printed.
    """

    def run(code: str) -> list[str]:
        nodes = [node for node in cluster.nodes for _ in range(WORKERS_PER_NODE)]
        with ThreadPoolExecutor(len(nodes)) as threads:
            return list(threads.map(python_on, nodes, repeat(code)))

    return run


def python_on(node: Primary, code: str, *arguments: str) -> str:
    patient = {**environment_on(node, PATIENCE), "SYNC": node.sync}
    return run_python(patient, "-c", PREAMBLE + code, *arguments).strip()


PREAMBLE = """
import django; django.setup()
from tests.long.cluster.primaries.scripts import *
"""


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


@pytest.fixture(scope="session")
def turns(running_cluster) -> Iterator[Primary]:
    """The nodes in turn, without end."""
    return cycle(running_cluster.nodes)


@pytest.fixture
def rounds(load, turns, capsys) -> Callable[..., Iterator[Any]]:
    """Give a node that the block may break; judge what the workers did meanwhile.

    Another, and another, while this test's share of ``HILO_CLUSTER_SECONDS`` lasts.
    """

    def rounds(
        title: str,
        faulty: list[Primary] | None = None,
        least: int = 1,
        counter: str = SHARED,
    ) -> Iterator[Primary]:
        end = time.monotonic() + SECONDS / TESTS_WITH_ROUNDS
        for number, node in enumerate(turns, 1):
            since = time.monotonic_ns()
            load.wait_for_progress()
            yield node
            load.wait_for_progress()
            give_up_at = time.monotonic() + PATIENCE
            # A busy machine lets each go on for long before another's turn comes.
            broken = [node] if faulty is None else faulty
            while not judged(title, broken, since, counter):
                assert time.monotonic() < give_up_at, "They do not draw by turns."
                load.wait_for_progress()
            if number >= least and time.monotonic() > end:
                break

    def judged(title: str, faulty: list[Primary], since: int, counter: str) -> bool:
        with load.at_rest():
            all_of_it, of_this = collect(load.folder), collect(load.folder, since)
            with capsys.disabled():
                print(f"\n{title}: {of_this}; {load.longest(of_this, faulty)}")
            all_of_it.assert_nothing_twice()
            load.assert_known_errors(of_this)
            load.assert_no_hang(of_this, faulty)
            load.assert_nodes_agree(all_of_it)
            return of_this.drew_by_turns(counter, load.seats_of(load.cluster.nodes))

    return rounds


TESTS_WITH_ROUNDS = 9
