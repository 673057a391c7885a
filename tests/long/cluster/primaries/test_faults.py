"""Nodes fail under the load of six processes, which live through all of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.long.cluster.evidence import collect
from tests.long.cluster.primaries.cluster import NODES, Primary
from tests.long.cluster.primaries.load import ClusterLoad
from tests.support.patience import PATIENCE


def test_healthy_nodes_share_one_counter_of_integer_keys(load, rounds):
    for _ in rounds("no fault", []):
        load.wait_for_progress(rows=300)


def test_a_killed_node_is_left_out_and_comes_back(cluster, load, rounds):
    for node in rounds("kill -9"):
        node.kill()
        load.wait_for_refusals([node])
        load.wait_for_progress(cluster.others(node))
        node.launch()
        cluster.wait_until_whole()


def test_nodes_restart_in_turn(cluster, load, rounds):
    for node in rounds("rolling restart", least=NODES):
        node.shut_down()
        assert node.process.wait(PATIENCE) == 0, node.last_lines()
        load.wait_for_progress(cluster.others(node))
        node.launch()
        cluster.wait_until_whole()


def test_a_node_that_lost_its_data_copies_them_from_another(cluster, load, rounds):
    for node in rounds("data lost"):
        node.kill()
        node.lose_data()
        for other in cluster.others(node):
            other.wait_for_view_of(2)
        load.wait_for_refusals([node])
        node.copy_data()
        load.wait_for_progress(cluster.others(node))
        cluster.wait_until_whole()


def test_a_stopped_node_is_evicted_and_heals_when_it_goes_on(cluster, load, rounds):
    for node in rounds("SIGSTOP and SIGCONT"):
        node.freeze()
        for other in cluster.others(node):
            other.wait_for_view_of(2)
        load.wait_for_progress(cluster.others(node))
        load.wait_for_refusals([node])
        node.thaw()
        cluster.wait_until_whole()


def test_a_node_that_is_cut_off_gives_no_ranges_until_it_is_healed(
    cluster, load, rounds
):
    for node in rounds("cut off"):
        node.cut_off()
        node.wait_until_without_quorum()
        with no_progress(load, node):
            load.wait_for_refusals([node])
            load.wait_for_progress(cluster.others(node))
        node.heal()
        cluster.wait_until_whole()


def test_without_quorum_there_are_errors_until_an_administrator_decides(
    cluster, load, rounds
):
    for node in rounds("two of three killed", cluster.nodes):
        for other in cluster.others(node):
            other.kill()
        node.wait_until_without_quorum()
        with no_progress(load, node):
            load.wait_for_refusals([node])
        node.bootstrap()
        load.wait_for_progress([node])
        for other in cluster.others(node):
            other.launch()
        cluster.wait_until_whole()


def test_a_cluster_that_lost_all_its_nodes_at_once_goes_on_where_it_was(
    cluster, load, rounds
):
    for _ in rounds("all killed", cluster.nodes):
        for node in cluster.nodes:
            node.kill()
        load.wait_for_refusals(cluster.nodes)
        cluster.restart()
        cluster.wait_until_whole()


def test_nodes_may_share_a_node_tag(load, rounds):
    load.end()
    load.start_all("A")
    for _ in rounds("one node tag", [], counter="orders/A"):
        load.wait_for_progress(rows=300)


@contextmanager
def no_progress(load: ClusterLoad, node: Primary) -> Iterator[None]:
    """Neither ranges nor rows come from the workers of a node.

    A transaction that its program rolls back needs no other member.
    """
    began = time.monotonic_ns()
    yield
    evidence = collect(load.folder, began, time.monotonic_ns())
    seats = load.seats_of([node])
    ranges = [s for spans in evidence.spans.values() for s in spans if s.seat in seats]
    assert ranges == []
    rows = [c for c in evidence.calls if (c.kind, c.outcome) == ("rows", "ok")]
    assert [call for call in rows if call.seat in seats] == []
