"""Faults under the load of six processes, which find each new primary by themselves.

The first mode may lose what the primary has not sent yet; the second, synchronous_mode
with SYNCHRONOUS_COMMIT, loses nothing. Patroni is not stopped with SIGSTOP: 3.0.2 does
not notice afterwards that etcd gave its lock to another.
"""

import time

from tests.long.cluster.patroni.node import LOOP_WAIT, TTL
from tests.support.patience import wait_until


def test_switchover(cluster, fault):
    with fault("switchover"):
        primary = cluster.leader()
        primary.switch_over()
        wait_until(lambda: cluster.primary() not in (None, primary))


def test_the_server_is_killed(cluster, fault):
    with fault("server killed"):
        cluster.leader().kill_server()


def test_the_node_is_killed(cluster, fault):
    with fault("node killed"):
        cluster.lose_primary()


def test_a_standby_that_lags_is_promoted(cluster, load, fault):
    with fault("standby lags, node killed") as event:
        lag(cluster, load, event)
        cluster.lose_primary()


def test_a_standby_that_does_not_replay_is_promoted(cluster, load, fault):
    with fault("replay paused, node killed") as event:
        for standby in cluster.decisive():
            standby.execute("SELECT pg_wal_replay_pause()")
        event.note()
        if cluster.synchronous:
            wait_until(cluster.waits_for_standby)
        else:
            load.wait_for_progress()
        cluster.lose_primary()


def test_both_standbys_are_down(cluster, load, fault):
    with fault("both standbys down"):
        primary, standbys = cluster.leader(), cluster.standbys()
        for standby in standbys:
            standby.kill()
        load.wait_for_progress()
        if cluster.synchronous:
            # They lack what was given meanwhile, so Patroni promotes neither.
            primary.kill()
            for standby in standbys:
                standby.start()
            # That nobody is promoted shows only when the lock is long over.
            time.sleep(TTL + 2 * LOOP_WAIT)
            assert cluster.primary() is None
            primary.start()


def test_etcd_is_stopped(cluster, fault):
    with fault("etcd stopped"):
        cluster.etcd.kill()
        wait_until(lambda: cluster.primary() is None)
        cluster.etcd.start()


def test_all_processes_are_lost_with_the_node(cluster, load, fault):
    """New ones know nothing of numbers that the standby lacks."""
    with fault("... with all processes") as event:
        lag(cluster, load, event)
        cluster.leader().kill()
        load.kill()
        load.start_all()
    assert bool(event.twice) == (not cluster.synchronous)


def lag(cluster, load, event) -> None:
    """Let the standbys that count hear nothing of what is given next."""
    late = cluster.decisive()
    cluster.cut_off(late)
    event.note()
    if cluster.synchronous:
        # Patroni lets commits wait for the other one.
        wait_until(lambda: cluster.decisive() not in ([], late))
    else:
        load.wait_for_progress()
